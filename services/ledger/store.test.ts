/** What both stores do with what they are given, one suite for both. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { newJob, newTraceparent, submission } from '../audit/fixture.ts';
import type { AuditRecord } from '../platform/codec.ts';
import { encode } from '../platform/codec.ts';
import type { StreamMessage } from '../platform/nats/bus.ts';
import type { JobRef } from '../platform/topology.ts';
import { subjects } from '../platform/topology.ts';
import { LostLedgerError } from './faults.ts';
import type { OpenLedger, TestStore } from './fixture.ts';
import { emptyLedger, stores, verified, writerOf } from './fixture.ts';
import { Ledger } from './ledger.ts';
import { openReader } from './open.ts';
import { RefillFault } from './plan.ts';
import type { JobFilter, LedgerReader, StoredSpan } from './store.ts';
import { compactRangeAt } from './tlog/proofs.ts';

const everything = { records: 1000, bytes: 1e9 };
const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');

const submitted = (sequence: number, job: JobRef, data: Uint8Array = submission(job)): StreamMessage => ({
  ...{ stream: 'SUBMISSIONS', sequence, data, headers: { traceparent: newTraceparent() } },
  subject: subjects.job('submitted', job),
});
const said = (
  sequence: number,
  kind: 'verified' | 'rejected',
  job: JobRef,
  data: Uint8Array,
): StreamMessage => ({
  ...{
    stream: 'JOBS',
    sequence,
    data,
    headers: { 'Nats-Msg-Id': `verifier:${kind}:${job.jobId}:SUBMISSIONS:1` },
  },
  subject: subjects.job(kind, job),
});
const rejection = (job: JobRef) =>
  encode('JobRejected', {
    ...{ ...job, rejectedAt: 1, stage: 'verifier', reason: 'UNSIGNED', detail: '' },
    ...{ pluginName: null, pluginSha256: null },
  });

for (const store of stores())
  describe(store.name, { skip: store.missing ?? false }, () => {
    after(() => store.stop());
    describe('pages', () => pages(store));
    describe('jobs', () => jobs(store));
    describe('the tree', () => tree(store));
    describe('erasure', () => erasure(store));
    describe('refill', () => refill(store));
    test('checkpoints, spans, the feed and deletions are as they were written', () => whatElse(store));
    test('text of every kind comes back as it was', () => anyText(store));
  });

function pages(store: TestStore): void {
  let ledger: OpenLedger;
  const job = newJob();
  before(async () => {
    ledger = await emptyLedger(store);
    const sized = Array.from({ length: 6 }, (_, i) =>
      submitted(i + 1, i % 2 === 0 ? job : newJob('b'), Buffer.alloc(100)),
    );
    await ledger.append(sized, 1);
  });
  after(() => ledger.store.close());

  const cases: [what: string, read: (store: LedgerReader) => Promise<AuditRecord[]>, sequences: number[]][] =
    [
      ['all', (s) => s.records(0, everything), [0, 1, 2, 3, 4, 5]],
      ['from a sequence', (s) => s.records(4, everything), [4, 5]],
      ['beyond the end', (s) => s.records(6, everything), []],
      ['so many records', (s) => s.records(1, { records: 2, bytes: 1e9 }), [1, 2]],
      ['as many as have so many bytes', (s) => s.records(0, { records: 9, bytes: 300 }), [0, 1, 2]],
      ['with the one that goes beyond', (s) => s.records(0, { records: 9, bytes: 201 }), [0, 1, 2]],
      ['never none', (s) => s.records(0, { records: 9, bytes: 0 }), [0]],
      ['of a tenant', (s) => s.recordsOfTenant('acme', 0, everything), [2, 4]],
      [
        'of a tenant, so many bytes',
        (s) => s.recordsOfTenant('acme', -1, { records: 9, bytes: 150 }),
        [0, 2],
      ],
      ['of a job', (s) => s.recordsOfJob(job, -1, everything), [0, 2, 4]],
      ['at sequences', (s) => s.recordsAt([5, 1, 9]), [1, 5]],
    ];
  for (const [what, read, sequences] of cases)
    test(what, async () => {
      const records = await read(ledger.store);
      assert.deepEqual(
        records.map(({ sequence }) => sequence),
        sequences,
      );
    });
}

function jobs(store: TestStore): void {
  let ledger: OpenLedger;
  const [a, b, c, other] = [newJob(), newJob(), newJob(), newJob('other')];
  before(async () => {
    ledger = await emptyLedger(store);
    await ledger.append([submitted(1, a)], 1_000_000);
    await ledger.append(
      [submitted(2, b), said(1, 'verified', b, verified(b, 'k1', '1'.repeat(64)))],
      2_000_000,
    );
    await ledger.append([submitted(3, c), said(2, 'rejected', c, rejection(c))], 3_000_000);
    await ledger.append(
      [submitted(4, other), said(3, 'verified', other, verified(other, 'k2', '2'.repeat(64)))],
      4_000_000,
    );
  });
  after(() => ledger.store.close());

  const cases: [filter: JobFilter, found: JobRef[]][] = [
    [{}, [other, c, b, a]],
    [{ tenant: 'acme' }, [c, b, a]],
    [{ since: 2000 }, [other, c, b]],
    [{ until: 2000 }, [a]],
    [{ since: 2000, until: 4000 }, [c, b]],
    [{ state: 'rejected' }, [c]],
    [{ runtime: 'bash' }, [other, b]],
    [{ keyId: 'k1' }, [b]],
    [{ pluginSha256: '2'.repeat(64) }, [other]],
    [{ plugin: 'hello.sh', tenant: 'other' }, [other]],
    [{ outcome: 'exited' }, []],
    [{ tenant: "acme' OR '1'='1" }, []],
    [{ keyId: "k1') OR ('1'='1" }, []],
  ];
  for (const [filter, found] of cases)
    test(JSON.stringify(filter), async () => {
      const rows = await ledger.store.jobs(filter, { limit: 10 });
      assert.deepEqual(
        rows.map(({ jobId }) => jobId),
        found.map(({ jobId }) => jobId),
      );
    });

  test('page by page', async () => {
    const seen: string[] = [];
    for (let before: number | undefined; ; ) {
      const page = await ledger.store.jobs({}, { limit: 1, ...(before === undefined ? {} : { before }) });
      if (page.length === 0) break;
      seen.push(...page.map(({ jobId }) => jobId));
      before = page.at(-1)?.firstSequence;
    }
    assert.deepEqual(
      seen,
      [other, c, b, a].map(({ jobId }) => jobId),
    );
  });

  test('say who signed and what', async () => {
    const { keyIds, pluginSha256, state } = (await ledger.store.job(b)) ?? {};
    assert.deepEqual([keyIds, pluginSha256, state], [['k1'], '1'.repeat(64), 'verified']);
  });
}

function tree(store: TestStore): void {
  const batch = (from: number, count: number) =>
    Array.from({ length: count }, (_, i) => submitted(from + i, newJob(), Buffer.from(`${i}`)));

  test('goes on where it was when it is opened again, and is read beside the writer', async () => {
    const location = await store.make();
    const first = await Ledger.open(await writerOf(location));
    await first.append(batch(1, 300), 1);
    await first.append(batch(301, 300), 2);
    const root = hex(first.root);
    const reader = await openReader(location);
    assert.equal(hex((await compactRangeAt(reader, 600)).root()), root);
    assert.deepEqual(
      (await reader.subtrees(8, 0, 10)).map(({ number }) => number),
      [0, 1],
    );
    await reader.close();
    await first.store.close();
    const second = await Ledger.open(await writerOf(location));
    assert.deepEqual([second.size, hex(second.root)], [600, root]);
    await second.append(batch(601, 1), 3);
    assert.equal(hex((await compactRangeAt(second.store, 601)).root()), hex(second.root));
    await second.store.close();
  });

  test('is never forked by who has an older one in mind', async () => {
    await using ledger = await emptyLedger(store);
    await ledger.append(batch(1, 2), 1);
    const stale = await Ledger.open(ledger.store);
    await ledger.append(batch(3, 1), 2);
    await assert.rejects(stale.append(batch(4, 1), 3), LostLedgerError);
    await assert.rejects(
      ledger.store.commit({
        ...{ onto: { size: 2, lastLeafHash: new Uint8Array(32) }, records: [], subtrees: [], duplicates: [] },
        ...{ epochs: new Map(), jobs: [], deletions: [], endedJobs: [] },
      }),
      LostLedgerError,
    );
    assert.equal((await ledger.store.head()).size, 3);
  });

  test('has one writer, and another one when that is closed', async () => {
    const location = await store.make();
    const first = await writerOf(location);
    await assert.rejects(writerOf(location), /somebody else/);
    await first.close();
    await (await writerOf(location)).close();
  });
}

function erasure(store: TestStore): void {
  test('of a job keeps every hash', async () => {
    await using ledger = await emptyLedger(store);
    const [job, other] = [newJob(), newJob()];
    await ledger.append([submitted(1, job), submitted(2, other)], 1);
    const root = hex(ledger.root);
    assert.equal(await ledger.store.eraseJob(job), 1);
    assert.equal(await ledger.store.eraseJob(job), 0);
    const [erased, kept] = await ledger.store.records(0, everything);
    assert.deepEqual([erased?.payload, erased?.payloadSalt.length, kept?.payloadSalt.length], [null, 0, 16]);
    assert.equal(hex((await compactRangeAt(ledger.store, 2)).root()), root);
    assert.deepEqual(await ledger.append([submitted(1, job)], 2), []);
  });

  test('by age takes ended jobs, oldest first, and passes those that are open', async () => {
    await using ledger = await emptyLedger(store);
    const [open, ended, late] = [newJob(), newJob(), newJob()];
    await ledger.append(
      [submitted(1, open), submitted(2, ended), said(1, 'rejected', ended, rejection(ended))],
      10,
    );
    await ledger.append([submitted(3, late), said(2, 'rejected', late, rejection(late))], 20);
    const whole = async () =>
      (await ledger.store.records(0, everything))
        .filter(({ payload }) => payload !== null)
        .map((r) => r.sequence);
    assert.equal(await ledger.store.erasePayloads(15, 1), 1);
    assert.deepEqual(await whole(), [0, 2, 3, 4]);
    assert.equal(await ledger.store.erasePayloads(15, 10), 1);
    assert.equal(await ledger.store.erasePayloads(15, 10), 0);
    assert.deepEqual(await whole(), [0, 3, 4]);
    await ledger.append([said(3, 'rejected', open, rejection(open))], 30);
    assert.equal(await ledger.store.erasePayloads(25, 10), 3);
    assert.deepEqual(await whole(), [5]);
  });
}

function refill(store: TestStore): void {
  let lost: AuditRecord[];
  const [job, other] = [newJob(), newJob()];
  const messages = [submitted(1, job), submitted(2, other), said(1, 'rejected', job, rejection(job))];
  before(async () => {
    await using ledger = await emptyLedger(store);
    lost = await ledger.append(messages, 5);
  });

  test('makes the same ledger again', async () => {
    await using ledger = await emptyLedger(store);
    await ledger.append(messages.slice(0, 0), 1);
    await ledger.refill(lost.slice(0, 1));
    await ledger.refill(lost.slice(1));
    assert.deepEqual(
      (await ledger.store.records(0, everything)).map(({ leafHash }) => hex(leafHash)),
      lost.map(({ leafHash }) => hex(leafHash)),
    );
    assert.equal((await ledger.store.job(job))?.state, 'rejected');
    assert.deepEqual(await ledger.append(messages, 6), []);
    assert.deepEqual(await ledger.store.readyDeletions(10), []);
  });

  const faults: [what: string, change: (record: AuditRecord) => AuditRecord | null, message: RegExp][] = [
    ['a gap', () => null, /comes where 0 is next/],
    ['another payload', (r) => ({ ...r, payload: Buffer.from('x') }), /another payload/],
    ['no payload', (r) => ({ ...r, payload: null }), /no payload/],
    ['another subject', (r) => ({ ...r, subject: `${r.subject}x` }), /another leaf hash/],
    ['another place of its tenant', (r) => ({ ...r, tenantSequence: 3 }), /number 3 of its tenant/],
    ['another predecessor', (r) => ({ ...r, previousLeafHash: Buffer.alloc(32) }), /does not follow/],
  ];
  for (const [what, change, message] of faults)
    test(`refuses ${what}`, async () => {
      await using ledger = await emptyLedger(store);
      const [first, ...rest] = lost as [AuditRecord, ...AuditRecord[]];
      const changed = [change(first), ...rest].filter((record) => record !== null);
      await assert.rejects(ledger.refill(changed), (error) => {
        assert.ok(error instanceof RefillFault);
        assert.match(error.message, message);
        return true;
      });
      assert.equal((await ledger.store.head()).size, 0);
    });
}

async function whatElse(store: TestStore): Promise<void> {
  await using ledger = await emptyLedger(store);
  const s = ledger.store;
  const checkpoint = (treeSize: number) => ({
    ...{ treeSize, rootHash: Buffer.alloc(32, treeSize), at: 1700000000123456, note: Buffer.from('note') },
  });
  assert.equal(await s.newestCheckpoint(), null);
  for (const size of [3, 7, 7]) await s.addCheckpoint(checkpoint(size));
  const sizes = async (from: number) => (await s.checkpoints(from, 9)).map(({ treeSize }) => treeSize);
  assert.deepEqual([await sizes(0), await sizes(4), await sizes(8)], [[3, 7], [7], []]);
  const newest = await s.newestCheckpoint();
  assert.deepEqual(
    { ...newest, rootHash: Buffer.from(newest?.rootHash ?? []), note: Buffer.from(newest?.note ?? []) },
    checkpoint(7),
  );

  const span = (spanId: string, startMicros: number): StoredSpan => ({
    ...{ traceId: 't', spanId, parentSpanId: null, service: 'audit', name: 'n', kind: 5, startMicros },
    ...{
      endMicros: startMicros + 1,
      status: 'error',
      statusMessage: 'a\\b',
      attributes: { a: [1, 'x\0'] },
      links: [],
    },
  });
  await s.addSpans([span('b', 2), span('a', 1)]);
  await s.addSpans([span('a', 9)]);
  assert.deepEqual(
    (await s.spansOfTrace('t', 9)).map((one) => ({ ...one })),
    [span('a', 1), span('b', 2)],
  );
  assert.equal(await s.removeSpans(3, 1), 1);
  assert.deepEqual(
    (await s.spansOfTrace('t', 9)).map(({ spanId }) => spanId),
    ['b'],
  );

  assert.equal(await s.feedPosition(), null);
  for (const ledgerSequence of [4, 5]) await s.saveFeedPosition({ ledgerSequence, streamSequence: 6 });
  assert.deepEqual({ ...(await s.feedPosition()) }, { ledgerSequence: 5, streamSequence: 6 });

  const [free, waiting] = [
    { stream: 'JOBS', sequence: 1 },
    { stream: 'SUBMISSIONS', sequence: 2 },
  ];
  await s.noteDeletions([
    { ...free, awaits: null },
    { ...waiting, awaits: 'verifier' },
  ]);
  const ready = async () => (await s.readyDeletions(9)).map((one) => ({ ...one }));
  assert.deepEqual([await ready(), await s.awaitedConsumers()], [[free], ['verifier']]);
  await s.liftWaits('verifier', 1);
  assert.deepEqual(await ready(), [free]);
  await s.liftWaits('verifier', 2);
  await s.deletionsDone([free]);
  assert.deepEqual(
    [await ready(), await s.isDeletable(free), await s.isDeletable(waiting)],
    [[waiting], false, true],
  );
}

async function anyText(store: TestStore): Promise<void> {
  await using ledger = await emptyLedger(store);
  const subjectsOf = [
    'job.submitted.a\0b',
    'job.submitted.\\0',
    'job.submitted.\\',
    'job.submitted.ü😀',
    "job.submitted.'",
  ];
  await ledger.append(
    subjectsOf.map((subject, i) => ({
      stream: 'SUBMISSIONS',
      sequence: i,
      subject,
      data: Buffer.from('x'),
      headers: {},
    })),
    1,
  );
  const records = await ledger.store.records(0, everything);
  assert.deepEqual(
    records.map(({ subject }) => subject),
    subjectsOf,
  );
}
