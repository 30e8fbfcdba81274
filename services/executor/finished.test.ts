import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { JobFinished, JobRouted } from '../../schemas/generated/events.ts';
import { decodeAs, encode } from '../platform/codec.ts';
import type { StopReason } from './decide.ts';
import { finishedFromResult, finishedWithoutResult, fitted } from './finished.ts';
import { parseLauncherResult } from './launcher-result.ts';
import { OutputTap } from './output-tap.ts';

const facts = {
  job: { tenant: 'acme', jobId: 'j', runtime: 'bash', deviceClass: 'cpu' } as JobRouted,
  attempt: 1,
  executor: 'me',
  finishedAtMs: 1000,
};
const sha256 = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';
const output = { bytes: 0, kept: 0, sha256, truncated: false };
const said = {
  version: 1,
  outcome: 'exited',
  exitCode: 0,
  signal: null,
  error: null,
  usage: { wallMs: 1.5, userMs: 0.25, systemMs: 0, peakMemoryBytes: 7, peakProcesses: 1, throttledMs: 0 },
  stdin: { bytes: 3 },
  stdout: output,
  stderr: output,
  oomKills: 0,
  oomVictims: [],
  syscalls: { available: false, reason: 'no permission' },
  denials: [],
  probes: [],
  executions: { available: true, dropped: 0, entries: [{ path: '/a', interpreter: null, atMs: 0.5 }] },
  devices: { available: true, granted: ['/dev/nvidia0'], accesses: [] },
  sandbox: { namespaces: ['pid'], cgroup: 'v2', landlockAbi: 7, uid: 9, network: 'none' },
  outputs: { files: [], skipped: [{ name: 'l', reason: 'symlink' }] },
  filterDigest: sha256,
  timings: { filter: 5 },
};

function result(changes: object = {}) {
  const parsed = parseLauncherResult(JSON.stringify({ ...said, ...changes }));
  if (!parsed.ok) throw new Error(parsed.fault);
  return parsed.result;
}
const nothing = { stdoutHead: new Uint8Array(), stderrHead: new Uint8Array(), artifacts: [], skipped: [] };
const silent = (mayHaveRun: boolean) => ({
  mayHaveRun,
  message: 'the launcher ended by SIGKILL, without a result',
  stdout: new OutputTap().seen(),
  stderr: new OutputTap().seen(),
});
const sandbox = finishedFromResult(facts, result(), nothing, null).sandbox;

describe('how a job finished', () => {
  const cancel: StopReason = { kind: 'cancel', requestedBy: 'a', reason: 'b' };
  const revoked: StopReason = { kind: 'revoked', message: 'm' };
  const leaseLost: StopReason = { kind: 'lease-lost', message: 'm' };
  const broken = {
    outcome: 'setup-failed',
    error: { step: 'cgroup', errno: 'EPERM', message: 'm', mend: 'n' },
  };
  const cases: [what: string, event: JobFinished, expected: [outcome: string, step: string | null]][] = [
    ['by itself', finishedFromResult(facts, result(), nothing, null), ['exited', null]],
    ['by itself while a cancel came', finishedFromResult(facts, result(), nothing, cancel), ['exited', null]],
    ...[
      'wall-time-exceeded',
      'cpu-time-exceeded',
      'memory-exceeded',
      'output-exceeded',
      'syscall-denied',
    ].map((outcome): [string, JobFinished, [string, null]] => [
      outcome,
      finishedFromResult(facts, result({ outcome }), nothing, null),
      [outcome.replaceAll('-', '_'), null],
    ]),
    ['no sandbox', finishedFromResult(facts, result(broken), nothing, null), ['setup_failed', 'cgroup']],
    [
      'cancelled',
      finishedFromResult(facts, result({ outcome: 'cancelled' }), nothing, cancel),
      ['cancelled', null],
    ],
    [
      'executor stopped',
      finishedFromResult(facts, result({ outcome: 'cancelled' }), nothing, { kind: 'shutdown' }),
      ['cancelled', 'executor-shutdown'],
    ],
    [
      'revoked',
      finishedFromResult(facts, result({ outcome: 'cancelled' }), nothing, revoked),
      ['cancelled', 'revoked'],
    ],
    [
      'lease lost',
      finishedFromResult(facts, result({ outcome: 'cancelled' }), nothing, leaseLost),
      ['executor_lost', 'lease'],
    ],
    [
      'launcher never ran',
      finishedWithoutResult(facts, silent(false), null, sandbox),
      ['setup_failed', 'launcher'],
    ],
    [
      'launcher died',
      finishedWithoutResult(facts, silent(true), null, sandbox),
      ['executor_lost', 'launcher'],
    ],
    ['cancelled at once', finishedWithoutResult(facts, silent(true), cancel, sandbox), ['cancelled', null]],
  ];
  for (const [what, event, expected] of cases)
    test(what, () => {
      assert.deepEqual([event.outcome, event.error?.step ?? null], expected);
      assert.ok(encode('JobFinished', event).length > 100);
    });
});

test('what the launcher measured is in the event, what it could not measure has a reason', () => {
  const event = finishedFromResult(facts, result(), nothing, null);
  assert.equal(event.usage.wallMicros, 1500);
  assert.equal(event.usage.stdinBytes, 3);
  const unsampled = { syscall: 'unknown', number: -1, rule: null, answer: 'ENOSYS', count: 24, args: [] };
  const flood = finishedFromResult(
    facts,
    result({ probes: [{ ...unsampled, program: null }] }),
    nothing,
    null,
  );
  assert.deepEqual(flood.probes, [{ ...unsampled, program: '' }]);
  const oomVictims = [{ program: 'python3', pid: 2 }];
  const hog = finishedFromResult(facts, result({ outcome: 'memory-exceeded', oomVictims }), nothing, null);
  assert.deepEqual(hog.usage.oomVictims, oomVictims);
  assert.deepEqual(event.executions.entries, [{ path: '/a', interpreter: null, atMicros: 500 }]);
  assert.deepEqual([event.syscalls.available, event.syscalls.unavailableReason], [false, 'no permission']);
  assert.deepEqual(event.sandbox.devices, ['/dev/nvidia0']);
  assert.deepEqual(
    event.skippedOutputs.map(({ name, reason }) => `${name} ${reason}`),
    ['l symlink'],
  );
});

test('what the kernel does not say is unknown, not zero, and the job has its result', () => {
  const usage = { ...said.usage, peakMemoryBytes: null, peakProcesses: null };
  const outcome = 'memory-exceeded';
  const event = finishedFromResult(facts, result({ outcome, usage }), nothing, null);
  const read = decodeAs('JobFinished', encode('JobFinished', event));
  assert.deepEqual([read.usage.peakMemoryBytes, read.usage.peakProcesses], [null, null]);
  assert.equal(read.outcome, 'memory_exceeded');
});

test('an event that is too large loses list entries, counted, never outputs', () => {
  const entries = Array.from({ length: 256 }, (_, i) => ({
    path: `/${'x'.repeat(4000)}${i}`,
    interpreter: null,
    atMs: i,
  }));
  const event = finishedFromResult(
    facts,
    result({ executions: { available: true, dropped: 1, entries } }),
    nothing,
    null,
  );
  const size = (candidate: JobFinished) => encode('JobFinished', candidate).length;
  const small = fitted(event, size, 100_000);
  assert.ok(size(small) <= 100_000);
  assert.equal(small.executions.dropped + small.executions.entries.length, 257);
});

describe('a result that is not as agreed', () => {
  const { exitCode: _, ...without } = said;
  const cases: [what: string, text: string, fault: RegExp][] = [
    ['nothing', '', /no JSON/],
    ['half', '{"version":1', /no JSON/],
    ['a missing field', JSON.stringify(without), /exitCode/],
    ['an unknown field', JSON.stringify({ ...said, extra: 1 }), /extra/],
    ['another version', JSON.stringify({ ...said, version: 2 }), /version/],
    ['an unknown outcome', JSON.stringify({ ...said, outcome: 'fine' }), /outcome/],
    ['a number that is none', JSON.stringify({ ...said, oomKills: -1 }), /oomKills/],
    ['a digest that is none', JSON.stringify({ ...said, filterDigest: 'abc' }), /filterDigest/],
  ];
  for (const [what, text, fault] of cases)
    test(what, () => {
      const parsed = parseLauncherResult(text);
      assert.match(parsed.ok ? 'taken' : parsed.fault, fault);
    });
});
