import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { JobFinished } from '../client/index.ts';
import { SyscallUse } from './syscall-use.ts';

type Run = Parameters<SyscallUse['add']>[0];

const refusal = (syscall: string, count: number, answer = 'EPERM'): JobFinished['denials'][number] => ({
  ...{ syscall, number: 1, rule: null, answer, count, args: [], program: '/bin/x' },
});

const run = (counts: Record<string, number>, more: Partial<Run> = {}, filterDigest = 'f'): Run => ({
  syscalls: { available: true, unavailableReason: null, total: 0, counts },
  denials: [],
  probes: [],
  sandbox: { filterDigest } as Run['sandbox'],
  ...more,
});

const uncounted: Run['syscalls'] = {
  available: false,
  unavailableReason: 'no CAP_BPF',
  total: 0,
  counts: {},
};

function summaryOf(...runs: Run[]) {
  const use = new SyscallUse({ digest: 'f', names: ['read', 'write', 'clone', 'open'] });
  for (const one of runs) use.add(one);
  return use.summary();
}

it('sums calls and runs, the most used first, and names what nobody used', () => {
  const { used, neverUsed, runs, counted } = summaryOf(run({ read: 3, write: 10 }), run({ read: 4 }));
  assert.deepEqual(used, [
    { syscall: 'write', calls: 10, runs: 1 },
    { syscall: 'read', calls: 7, runs: 2 },
  ]);
  assert.deepEqual([neverUsed, runs, counted], [['clone', 'open'], 2, 2]);
});

it('what was refused was not used, though it was counted', () => {
  const refused = run({ clone: 5, unshare: 2 }, { denials: [refusal('clone', 3), refusal('unshare', 2)] });
  const { used, refused: sums, neverUsed } = summaryOf(refused, refused);
  assert.deepEqual(used, [{ syscall: 'clone', calls: 4, runs: 2 }]);
  assert.deepEqual(sums, [
    { syscall: 'clone', answer: 'EPERM', calls: 6, runs: 2 },
    { syscall: 'unshare', answer: 'EPERM', calls: 4, runs: 2 },
  ]);
  assert.deepEqual(neverUsed, ['read', 'write', 'open']);
});

it('a run that could not be counted is told, and its refusals count', () => {
  const { unavailable, counted, refused } = summaryOf(
    run({}, { syscalls: uncounted, probes: [refusal('unknown', 1, 'ENOSYS')] }),
  );
  assert.deepEqual([unavailable, counted], [[{ reason: 'no CAP_BPF', runs: 1 }], 0]);
  assert.deepEqual(refused, [{ syscall: 'number 1', answer: 'ENOSYS', calls: 1, runs: 1 }]);
});

it('a run under another filter is told', () => {
  assert.deepEqual(summaryOf(run({}, {}, 'g')).otherFilters, [{ digest: 'g', runs: 1 }]);
});
