import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JobEntry } from '../platform/job-state.ts';
import { openEntry } from '../platform/job-state.ts';
import { decideCancel, supervise } from './decide.ts';

const job = { tenant: 'acme', jobId: '019d0000-0000-7000-8000-000000000001' };
const open = openEntry(job, {
  submissionSequence: 7,
  traceparent: null,
  deadline: 2_000_000,
  maxAttempts: 1,
});
const entry = (changes: Partial<JobEntry>): JobEntry => ({
  ...open,
  runtime: 'python',
  deviceClass: 'cpu',
  ...changes,
});

const supervision: [what: string, entry: JobEntry, nowMs: number, unchangedMs: number, expected: string][] = [
  ['waiting, in time', entry({}), 1000, 60_000, 'nothing'],
  ['waiting past its deadline', entry({}), 3000, 0, 'rejected DEADLINE_PASSED'],
  ['not even routed past its deadline', open, 3000, 0, 'rejected DEADLINE_PASSED'],
  ['claimed past its deadline, executor alive', entry({ state: 'claimed' }), 3000, 100, 'nothing'],
  [
    'claimed past its deadline, executor lost',
    entry({ state: 'claimed' }),
    3000,
    20_000,
    'rejected DEADLINE_PASSED',
  ],
  ['claimed in time, executor lost', entry({ state: 'claimed' }), 1000, 20_000, 'nothing'],
  ['running past its deadline', entry({ state: 'started', attempt: 1 }), 3000, 100, 'nothing'],
  ['running, executor lost', entry({ state: 'started', attempt: 1 }), 1000, 20_000, 'finished executor_lost'],
  ['lost with a try left', entry({ state: 'started', attempt: 1, maxAttempts: 2 }), 1000, 20_000, 'nothing'],
  [
    'lost with a try left, too late',
    entry({ state: 'started', attempt: 1, maxAttempts: 2 }),
    3000,
    20_000,
    'finished executor_lost',
  ],
  [
    'lost at its last try',
    entry({ state: 'started', attempt: 2, maxAttempts: 2 }),
    1000,
    20_000,
    'finished executor_lost',
  ],
  [
    'lost with a try left, but cancelled',
    entry({ state: 'started', attempt: 1, maxAttempts: 2, cancel: { requestedBy: 'a', reason: 'b' } }),
    1000,
    20_000,
    'finished executor_lost',
  ],
  ['ended', entry({ state: 'ended' }), 9_000, 99_000, 'nothing'],
];
for (const [what, state, nowMs, unchangedMs, expected] of supervision)
  test(`supervision, ${what}: ${expected}`, () => {
    const decision = supervise(state, { nowMs, unchangedMs, leaseMs: 15_000 });
    const text =
      decision === null
        ? 'nothing'
        : decision.kind === 'rejected'
          ? `rejected ${decision.event.reason}`
          : `finished ${decision.event.outcome}`;
    assert.equal(text, expected);
  });

const request = { ...job, requestedAt: 1, requestedBy: 'ada', reason: 'changed my mind' };
const cancels: [JobEntry['state'], string][] = [
  ['open', 'end'],
  ['claimed', 'end'],
  ['started', 'ask-executor'],
  ['ended', 'too-late'],
];
for (const [state, expected] of cancels)
  test(`a cancel of a job that is ${state}: ${expected}`, () =>
    assert.equal(decideCancel(entry({ state }), request, 1000).kind, expected));
