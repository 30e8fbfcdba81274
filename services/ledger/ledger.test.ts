/** The ledger alone, on both stores: what makes a record, and what does not. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { cancelled, newJob, newTraceparent, submission } from '../audit/fixture.ts';
import type { AuditRecord } from '../platform/codec.ts';
import { encode } from '../platform/codec.ts';
import type { StreamMessage } from '../platform/nats/bus.ts';
import { subjects } from '../platform/topology.ts';
import type { OpenLedger, TestStore } from './fixture.ts';
import { emptyLedger, stores } from './fixture.ts';
import { placeKey } from './keys.ts';
import type { Ledger } from './ledger.ts';
import { leafBytes } from './tlog/leaf.ts';

function message(
  stream: string,
  sequence: number,
  subject: string,
  data: Uint8Array,
  headers = {},
): StreamMessage {
  return { stream, sequence, subject, data, headers };
}
const withId = (id: string) => ({ 'Nats-Msg-Id': id });
const everything = { records: 1000, bytes: 1e9 };
const all = (ledger: Ledger): Promise<AuditRecord[]> => ledger.store.records(0, everything);
const sha256 = (...parts: Uint8Array[]) => createHash('sha256').update(Buffer.concat(parts)).digest('hex');
const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');

for (const store of stores())
  describe(store.name, { skip: store.missing ?? false }, () => {
    after(() => store.stop());
    describe('leaves', () => leaves(store));
    describe('once and only once', () => onceOnly(store));
    describe('what the events say of a job', () => projection(store));
    describe('a message that comes back to its stream after it was deleted', () => comesBack(store));
  });

function leaves(store: TestStore): void {
  const job = newJob();
  const data = submission(job);
  let records: AuditRecord[] = [];
  before(async () => {
    await using ledger = await emptyLedger(store);
    await ledger.append([message('SUBMISSIONS', 1, subjects.job('submitted', job), data)], 1000);
    await ledger.append([message('SUBMISSIONS', 2, subjects.job('submitted', newJob()), data)], 900);
    await ledger.append(
      [message('JOBS', 1, subjects.job('started', job), Buffer.from('x'), withId('executor:started:JOBS:0'))],
      1100,
    );
    records = await all(ledger);
  });
  const three = () => records as [AuditRecord, AuditRecord, AuditRecord];

  test('can be made again from the row', () => {
    const [first, other, second] = three();
    for (const record of [first, other, second]) {
      assert.equal(record.payloadSalt.length, 16);
      assert.equal(hex(record.payloadHash), sha256(record.payloadSalt, record.payload ?? new Uint8Array()));
      assert.equal(hex(record.leafHash), sha256(Uint8Array.of(0), leafBytes(record)));
    }
    const { sequence, recordedAt, subject, eventId, signer, payloadHash, previousLeafHash } = second;
    const leaf = { sequence, recordedAt, subject, eventId, signer, payloadHash, previousLeafHash };
    assert.deepEqual(leafBytes(second), encode('AuditLeaf', leaf));
  });

  test('are chained by job', () => {
    const [first, other, second] = three();
    assert.deepEqual(
      [first, other, second].map((record) => hex(record.previousLeafHash)),
      ['', '', hex(first.leafHash)],
    );
  });

  test('have times that never go back, sequences without gap, and signers', () => {
    const [first, other, second] = three();
    const facts = [first, other, second].map((r) => [r.sequence, r.tenantSequence, r.recordedAt, r.signer]);
    assert.deepEqual(facts, [
      [0, 0, 1000, 'submitter'],
      [1, 1, 1000, 'submitter'],
      [2, 2, 1100, 'executor'],
    ]);
  });
}

function onceOnly(store: TestStore): void {
  const job = newJob();
  const other = newJob();
  const started = subjects.job('started', job);
  const id = withId('executor:started:JOBS:1');
  const event = message('JOBS', 5, started, Buffer.from('a'), id);
  const cases: [what: string, second: StreamMessage, eventIds: string[]][] = [
    ['the same message', event, ['executor:started:JOBS:1']],
    ['the same event again', { ...event, sequence: 6 }, ['executor:started:JOBS:1']],
    [
      'the same event, made anew',
      { ...event, sequence: 6, data: Buffer.from('b') },
      ['executor:started:JOBS:1'],
    ],
    [
      'an event of another job under a used id (streams were made anew)',
      { ...event, sequence: 6, subject: subjects.job('started', other) },
      ['executor:started:JOBS:1', 'executor:started:JOBS:1~JOBS.0:6'],
    ],
    [
      'another message in the same place (the stream was made anew)',
      message('JOBS', 5, subjects.job('started', other), Buffer.from('b')),
      ['executor:started:JOBS:1', `unknown:started:${other.jobId}:JOBS:5`],
    ],
    [
      'the same place in another stream',
      { ...event, stream: 'SUBMISSIONS', subject: subjects.job('submitted', other) },
      ['executor:started:JOBS:1', `submitter:submitted:${other.jobId}:SUBMISSIONS:5`],
    ],
  ];
  for (const [what, second, eventIds] of cases)
    test(what, async () => {
      await using ledger = await emptyLedger(store);
      await ledger.append([event], 1);
      await ledger.append([second], 2);
      await ledger.append([second, second], 3);
      assert.deepEqual(
        (await all(ledger)).map((record) => record.eventId),
        eventIds,
      );
      assert.deepEqual([...(await ledger.held([second]))], [placeKey(second)]);
    });

  test('after a stream was made anew, its old places are free and its new ones are known', async () => {
    await using ledger = await emptyLedger(store);
    const at = (sequence: number, which: string) =>
      message('SUBMISSIONS', sequence, subjects.job('submitted', job), Buffer.from(which));
    await ledger.append([at(1, 'a'), at(2, 'b')], 1);
    await ledger.append([at(1, 'c'), at(1, 'c'), at(2, 'd'), at(3, 'e')], 2);
    await ledger.append([at(1, 'c'), at(2, 'd')], 3);
    assert.equal(
      (await all(ledger)).map((record) => Buffer.from(record.payload ?? []).toString()).join(''),
      'abcde',
    );
  });

  test('a failing append leaves nothing behind', async () => {
    await using ledger = await emptyLedger(store);
    const bad = { ...event, sequence: 7, subject: undefined } as unknown as StreamMessage;
    await assert.rejects(ledger.append([event, bad], 1));
    assert.deepEqual(await all(ledger), []);
    assert.equal((await ledger.append([event], 1)).length, 1);
  });
}

function projection(store: TestStore): void {
  const job = newJob();
  const trace = newTraceparent();
  const submitted = message('SUBMISSIONS', 1, subjects.job('submitted', job), submission(job), {
    traceparent: trace,
  });
  const rejection = (reason: string) =>
    encode('JobRejected', {
      ...{
        ...job,
        rejectedAt: 1,
        stage: 'verifier' as const,
        reason,
        detail: '',
        pluginName: null,
        pluginSha256: null,
      },
    });
  const rejected = message(
    'JOBS',
    1,
    subjects.job('rejected', job),
    rejection('UNSIGNED'),
    withId('verifier:a'),
  );
  const lateCancel = message('JOBS', 2, subjects.job('cancelled', job), cancelled(job), withId('router:b'));
  const cases: [what: string, messages: StreamMessage[], expected: object | undefined][] = [
    ['submitted', [submitted], { state: 'submitted', plugin: 'hello.sh', traceId: trace.split('-')[1] }],
    ['rejected', [submitted, rejected], { state: 'rejected', reason: 'UNSIGNED', plugin: 'hello.sh' }],
    ['in any order', [rejected, submitted], { state: 'rejected', reason: 'UNSIGNED' }],
    ['the first end wins', [submitted, rejected, lateCancel], { state: 'rejected', reason: 'UNSIGNED' }],
    [
      'a duplicate submission changes nothing',
      [submitted, rejected, { ...submitted, sequence: 2, headers: { traceparent: newTraceparent() } }],
      { state: 'rejected', traceId: trace.split('-')[1] },
    ],
    ['garbage says nothing', [{ ...submitted, data: Buffer.from('?') }], undefined],
    ['nor does an event of another job', [{ ...submitted, data: submission(newJob()) }], undefined],
    [
      'nor a cancel for no job',
      [message('SUBMISSIONS', 1, subjects.job('cancel-requested', job), Buffer.from(''))],
      undefined,
    ],
  ];
  for (const [what, messages, expected] of cases)
    test(what, async () => {
      await using ledger = await emptyLedger(store);
      await ledger.append(messages, 5_000_000);
      const [row] = await ledger.store.jobs({ tenant: job.tenant }, { limit: 10 });
      if (expected === undefined) assert.equal(row, undefined);
      else assert.deepEqual({ ...row, ...expected }, { ...row });
    });

  test('who names the trace of another tenant does not get to read it', async () => {
    await using ledger = await emptyLedger(store);
    const spy = newJob('spy');
    const spying = message('SUBMISSIONS', 2, subjects.job('submitted', spy), submission(spy), {
      traceparent: trace,
    });
    await ledger.append([submitted, spying], 1);
    assert.equal((await ledger.store.job(spy))?.traceId, null);
    assert.equal((await ledger.store.job(job))?.traceId, trace.split('-')[1]);
  });
}

function comesBack(store: TestStore): void {
  const [ended, open, unreadable] = [newJob(), newJob(), newJob()];
  let ledger: OpenLedger;
  const submitted = (sequence: number, job: typeof ended) =>
    message('SUBMISSIONS', sequence, subjects.job('submitted', job), submission(job));
  const end = message(
    'JOBS',
    1,
    subjects.job('cancelled', ended),
    cancelled(ended),
    withId('router:c:SUBMISSIONS:1'),
  );
  const garbage = message('SUBMISSIONS', 3, subjects.job('submitted', unreadable), Buffer.from('?'));
  const letter = message('JOBS', 2, subjects.job('dead-lettered', unreadable), Buffer.from('x'), {
    ...withId(`verifier:dead-lettered:${unreadable.jobId}:SUBMISSIONS:3`),
    'Sandbus-Cause': 'SUBMISSIONS:3',
  });
  const [first, waiting] = [submitted(1, ended), submitted(2, open)];
  before(async () => {
    ledger = await emptyLedger(store);
    await ledger.append([first, end, waiting, garbage, letter], 1000);
    await ledger.store.deletionsDone([first, end, garbage, letter]);
  });
  after(() => ledger.store.close());

  const cases: [what: string, message: StreamMessage, mayLeave: boolean][] = [
    ['the submission of an ended job', first, true],
    ['its terminal event', end, true],
    ['the submission of an open job', waiting, false],
    ['what is kept in a dead letter', garbage, true],
    ['the dead letter', letter, true],
    ['one that was never recorded', submitted(9, open), false],
    ['another one in the same place', submitted(1, open), false],
  ];
  for (const [what, one, mayLeave] of cases)
    test(`${what}: ${mayLeave ? 'leaves again' : 'stays'}`, async () =>
      assert.equal(await ledger.releaseAgain(one), mayLeave));
}
