import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { JobRouted } from '../../schemas/generated/events.ts';
import type { JobEntry } from '../platform/job-state.ts';
import { openEntry } from '../platform/job-state.ts';
import { store } from '../trust/fixture.ts';
import type { Rejection, TrustDecision } from '../trust/index.ts';
import { reject } from '../trust/index.ts';
import type { Capabilities, ClaimFacts } from './decide.ts';
import { decideClaim, isStillHeld, refuseStart, startedEntry, unfitFor } from './decide.ts';

const job = { tenant: 'acme', jobId: '019d0000-0000-7000-8000-000000000001' };
const open = openEntry(job, {
  submissionSequence: 7,
  traceparent: null,
  deadline: 2_000_000,
  maxAttempts: 1,
});
const entry = (changes: Partial<JobEntry>): JobEntry => ({ ...open, ...changes });
const claimed = entry({ state: 'claimed', executor: 'other', beat: 3 });
const started = entry({ state: 'started', executor: 'other', beat: 9, attempt: 1 });
const again = { ...started, maxAttempts: 2 };
const alive: ClaimFacts = { self: 'me', leftByUs: false, leaseLost: false, nowMs: 1000 };
const lost = { ...alive, leaseLost: true };
const left = { ...alive, leftByUs: true };

describe('what to do with a job', () => {
  const cases: [what: string, entry: JobEntry, facts: ClaimFacts, expected: string][] = [
    ['open', open, alive, 'claim, claimed, attempt 0'],
    ['ended', entry({ state: 'ended' }), alive, 'republish'],
    ['ended, however lost', entry({ state: 'ended' }), lost, 'republish'],
    ['claimed by a live executor', claimed, alive, 'wait HELD_ELSEWHERE'],
    [
      'claimed by one that bears our name, not by this process',
      { ...claimed, executor: 'me' },
      alive,
      'wait HELD_ELSEWHERE',
    ],
    ['claimed by a lost executor', claimed, lost, 'claim, claimed, attempt 0'],
    [
      'claimed by us, in a try that failed',
      { ...claimed, executor: 'me' },
      left,
      'claim, claimed, attempt 0',
    ],
    ['started by a live executor', started, alive, 'wait HELD_ELSEWHERE'],
    ['started by a lost executor: never again', started, lost, 'wait EXECUTOR_LOST'],
    [
      'started by us and not recorded: never again',
      { ...started, executor: 'me' },
      left,
      'wait EXECUTOR_LOST',
    ],
    ['started by a lost executor, an attempt left', again, lost, 'claim, started, attempt 1'],
    ['an attempt left, executor alive', again, alive, 'wait HELD_ELSEWHERE'],
    ['both attempts used', { ...again, attempt: 2 }, lost, 'wait EXECUTOR_LOST'],
    ['an attempt left, too late', again, { ...lost, nowMs: 3000 }, 'wait EXECUTOR_LOST'],
    [
      'an attempt left, cancelled',
      { ...again, cancel: { requestedBy: 'a', reason: 'b' } },
      lost,
      'wait EXECUTOR_LOST',
    ],
  ];
  for (const [what, from, facts, expected] of cases)
    test(`${what}: ${expected}`, () => {
      const action = decideClaim(from, facts);
      const { state, attempt } = action.kind === 'claim' ? action.entry : { state: '', attempt: 0 };
      const details = { claim: `, ${state}, attempt ${attempt}`, wait: '', republish: '' }[action.kind];
      assert.equal(`${action.kind}${action.kind === 'wait' ? ` ${action.code}` : details}`, expected);
      if (action.kind !== 'claim') return;
      assert.deepEqual([action.entry.executor, action.entry.beat], ['me', from.beat + 1]);
    });
});

test('a start counts the attempt', () => {
  const { state, attempt, beat } = startedEntry({ ...again, beat: 4 });
  assert.deepEqual({ state, attempt, beat }, { state: 'started', attempt: 2, beat: 5 });
});

describe('is a changed entry still ours?', () => {
  const held = entry({ state: 'started', executor: 'me', attempt: 1, beat: 5 });
  const cases: [what: string, changes: Partial<JobEntry>, expected: boolean][] = [
    ['the router added a cancel', { cancel: { requestedBy: 'a', reason: 'b' } }, true],
    ['our own renewal came through, its confirmation did not', { beat: 6 }, true],
    ['two renewals that we did not make', { beat: 7 }, false],
    ['another executor has it', { executor: 'other' }, false],
    ['another attempt', { attempt: 2 }, false],
    ['ended', { state: 'ended' }, false],
  ];
  for (const [what, changes, expected] of cases)
    test(`${what}: ${expected}`, () => assert.equal(isStillHeld({ ...held, ...changes }, held), expected));
});

describe('the last look before the start', () => {
  const trusted = { ok: true } as TrustDecision;
  const refused: TrustDecision = { ok: false, reason: 'REVOKED', detail: 'x' };
  const cases: [
    what: string,
    entry: JobEntry,
    nowMs: number,
    trust: TrustDecision,
    expected: string | null,
  ][] = [
    ['all well', open, 2000, trusted, null],
    ['not trusted', open, 1000, refused, 'REVOKED'],
    ['too late', open, 2001, trusted, 'DEADLINE_PASSED'],
    ['too late for a first start only', again, 9000, trusted, null],
  ];
  for (const [what, from, nowMs, trust, expected] of cases)
    test(`${what}: ${expected ?? 'start'}`, () =>
      assert.equal(refuseStart(from, { nowMs, trust })?.reason ?? null, expected));
});

describe('can this executor run it?', () => {
  const trust = { store: store({ version: 5 }), problem: null };
  const here: Capabilities = { memoryBudgetBytes: 1000, allowHostNetwork: false, trust };
  const without = (problem: Rejection) => ({ ...here, trust: { store: null, problem } });
  const routed = (memoryBytes: number, network: 'none' | 'host', trustStoreVersion: number) =>
    ({ trustStoreVersion, spec: { network, limits: { memoryBytes } } }) as unknown as JobRouted;
  const cases: [what: string, job: JobRouted, here: Capabilities, expected: string | null][] = [
    ['all it needs', routed(1000, 'none', 5), here, null],
    ['a newer store here', routed(1, 'none', 4), here, null],
    ['an older store here', routed(1, 'none', 6), here, 'TRUST_STORE_OUTDATED, in the end null'],
    [
      'no store here: the decision about trust refuses',
      routed(1, 'none', 6),
      without(reject('NO_TRUST_STORE', 'no file')),
      null,
    ],
    [
      'a store here that is older than the highest one',
      routed(1, 'none', 5),
      without(reject('TRUST_STORE_OUTDATED', 'version 6 was seen')),
      'TRUST_STORE_OUTDATED, in the end null',
    ],
    ['too much memory', routed(1001, 'none', 5), here, 'MEMORY_BUDGET, in the end LIMIT_EXCEEDED'],
    ['the network of the host', routed(1, 'host', 5), here, 'HOST_NETWORK, in the end LIMIT_EXCEEDED'],
    [
      'the network of the host, with consent',
      routed(1, 'host', 5),
      { ...here, allowHostNetwork: true },
      null,
    ],
  ];
  for (const [what, request, capabilities, expected] of cases)
    test(`${what}: ${expected ?? 'yes'}`, () => {
      const unfit = unfitFor(request, capabilities);
      assert.equal(unfit === null ? null : `${unfit.code}, in the end ${unfit.reason}`, expected);
    });
});
