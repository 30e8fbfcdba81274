/** The ledger alone, on a database in memory: what makes a record, and what does not. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import { describe, test } from 'node:test';
import { leafBytes } from '../ledger/tlog/leaf.ts';
import type { AuditRecord } from '../platform/codec.ts';
import { encode } from '../platform/codec.ts';
import type { StreamMessage } from '../platform/nats/bus.ts';
import { subjects } from '../platform/topology.ts';
import { cancelled, newJob, newTraceparent, submission } from './fixture.ts';
import { Ledger } from './ledger.ts';
import { schemaSql } from './schema.ts';

function emptyLedger() {
  const database = new DatabaseSync(':memory:');
  database.exec(schemaSql);
  return new Ledger(database);
}

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
const all = (ledger: Ledger): AuditRecord[] => [...ledger.records.from(0)];
const sha256 = (...parts: Uint8Array[]) => createHash('sha256').update(Buffer.concat(parts)).digest('hex');
const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');

describe('leaves', () => {
  const job = newJob();
  const ledger = emptyLedger();
  const data = submission(job);
  ledger.append([message('SUBMISSIONS', 1, subjects.job('submitted', job), data)], 1000);
  ledger.append([message('SUBMISSIONS', 2, subjects.job('submitted', newJob()), data)], 900);
  ledger.append(
    [message('JOBS', 1, subjects.job('started', job), Buffer.from('x'), withId('executor:started:JOBS:0'))],
    1100,
  );
  const [first, other, second] = all(ledger) as [AuditRecord, AuditRecord, AuditRecord];

  test('can be made again from the row', () => {
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
    assert.deepEqual(
      [first, other, second].map((record) => hex(record.previousLeafHash)),
      ['', '', hex(first.leafHash)],
    );
  });

  test('have times that never go back, sequences without gap, and signers', () => {
    const facts = [first, other, second].map((r) => [r.sequence, r.tenantSequence, r.recordedAt, r.signer]);
    assert.deepEqual(facts, [
      [0, 0, 1000, 'submitter'],
      [1, 1, 1000, 'submitter'],
      [2, 2, 1100, 'executor'],
    ]);
  });
});

describe('once and only once', () => {
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
    test(what, () => {
      const ledger = emptyLedger();
      ledger.append([event], 1);
      ledger.append([second], 2);
      ledger.append([second, second], 3);
      assert.deepEqual(
        all(ledger).map((record) => record.eventId),
        eventIds,
      );
      assert.ok(ledger.has(second));
    });

  test('after a stream was made anew, its old places are free and its new ones are known', () => {
    const ledger = emptyLedger();
    const at = (sequence: number, which: string) =>
      message('SUBMISSIONS', sequence, subjects.job('submitted', job), Buffer.from(which));
    ledger.append([at(1, 'a'), at(2, 'b')], 1);
    ledger.append([at(1, 'c'), at(1, 'c'), at(2, 'd'), at(3, 'e')], 2);
    ledger.append([at(1, 'c'), at(2, 'd')], 3);
    assert.equal(
      all(ledger)
        .map((record) => Buffer.from(record.payload ?? []).toString())
        .join(''),
      'abcde',
    );
  });

  test('a failing append leaves nothing behind', () => {
    const ledger = emptyLedger();
    const bad = { ...event, sequence: 7, subject: undefined } as unknown as StreamMessage;
    assert.throws(() => ledger.append([event, bad], 1));
    assert.deepEqual(all(ledger), []);
    assert.equal(ledger.append([event], 1).length, 1);
  });
});

describe('what the events say of a job', () => {
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
    test(what, () => {
      const ledger = emptyLedger();
      ledger.append(messages, 5_000_000);
      const [row] = ledger.jobs.newest(job.tenant);
      if (expected === undefined) assert.equal(row, undefined);
      else assert.deepEqual({ ...row, ...expected }, { ...row });
    });

  test('who names the trace of another tenant does not get to read it', () => {
    const ledger = emptyLedger();
    const spy = newJob('spy');
    const spying = message('SUBMISSIONS', 2, subjects.job('submitted', spy), submission(spy), {
      traceparent: trace,
    });
    ledger.append([submitted, spying], 1);
    assert.equal(ledger.jobs.read(spy)?.traceId, null);
    assert.equal(ledger.jobs.read(job)?.traceId, trace.split('-')[1]);
  });
});

describe('a message that comes back to its stream after it was deleted', () => {
  const [ended, open, unreadable] = [newJob(), newJob(), newJob()];
  const ledger = emptyLedger();
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
  ledger.append([first, end, waiting, garbage, letter], 1000);
  for (const { stream, sequence } of [first, end, garbage, letter])
    ledger.deletions.done({ stream, sequence });

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
    test(`${what}: ${mayLeave ? 'leaves again' : 'stays'}`, () =>
      assert.equal(ledger.releaseAgain(one), mayLeave));
});
