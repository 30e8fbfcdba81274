/** What a job's state is restored to, by what the bus has of it. test/flow/lost-states.test.ts deletes the real ones. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DEFAULT_LIMITS } from '../trust/index.ts';
import type { Evidence } from './restore.ts';
import { restoredEntry } from './restore.ts';

const job = { tenant: 'acme', jobId: '019d0000-0000-7000-8000-000000000001' };
const spec: Evidence['verified']['spec'] = {
  ...{ args: [], env: {}, stdin: null, inputs: [], limits: DEFAULT_LIMITS, requiresGpu: false },
  ...{ network: 'none', maxAttempts: 2, deadline: 5_000_000, labels: {} },
};
const verifiedOnly: Evidence = {
  verified: { ...job, submissionSequence: 3, spec, concurrency: 4 },
  ...{ verifiedSequence: 7, traceparent: null, route: null, started: null, terminal: null },
};
const route = { runtime: 'bash', deviceClass: 'cpu' } as const;
const started = { attempt: 1, executor: 'host-1' };
const terminal = {
  ...{ stream: 'JOBS', sequence: 9, subject: `job.finished.acme.${job.jobId}`, data: Buffer.from('end') },
  headers: {
    'Nats-Msg-Id': 'executor:finished-1:x:JOBS:8',
    'Sandbus-Cause': 'JOBS:8',
    'Sandbus-Signature': 'c2ln',
  },
};

const cases: [what: string, evidence: Partial<Evidence>, expected: object][] = [
  [
    'verified and no more: it waits for its turn, by its job.verified',
    {},
    { state: 'open', held: 7, runtime: null, concurrency: 4, submissionSequence: 3, deadline: 5_000_000 },
  ],
  ['routed: it waits for an executor', { route }, { state: 'open', held: null, ...route, attempt: 0 }],
  [
    'started: it has started, by whom and for which time, so that nobody starts it again',
    { route, started },
    { state: 'started', ...route, ...started, maxAttempts: 2 },
  ],
  ['ended: it has ended, with the very bytes', { route, started, terminal }, { state: 'ended' }],
];
for (const [what, evidence, expected] of cases)
  test(what, () => {
    const entry = restoredEntry({ ...verifiedOnly, ...evidence });
    for (const [name, value] of Object.entries(expected))
      assert.deepEqual(entry[name as keyof typeof entry], value, name);
    if (evidence.terminal === undefined) return;
    const { data, id, cause, signature } = entry.terminal ?? assert.fail();
    assert.deepEqual(
      [Buffer.from(data ?? '', 'base64').toString(), id, cause, signature],
      ['end', 'executor:finished-1:x:JOBS:8', { stream: 'JOBS', sequence: 8 }, 'c2ln'],
    );
  });
