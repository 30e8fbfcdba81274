import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { JobResult, Outcome } from '../client/index.ts';
import { exitCodeOf, exitCodes } from './exit-codes.ts';

/** Only what the exit code depends on. */
function finished(outcome: Outcome, exitCode: number | null = null, signal: number | null = null): JobResult {
  return { kind: 'finished', event: { outcome, exitCode, signal } } as JobResult;
}

const cases: readonly (readonly [name: string, result: JobResult, code: number])[] = [
  ['exited with 0', finished('exited', 0), 0],
  ['exited with 7', finished('exited', 7), 7],
  ['ended by SIGTERM', finished('signaled', null, 15), 143],
  ['wall clock', finished('wall_time_exceeded', null, 9), 124],
  ['CPU time', finished('cpu_time_exceeded', null, 9), 152],
  ['memory', finished('memory_exceeded', null, 9), 137],
  ['output', finished('output_exceeded', null, 9), 153],
  ['refused system call', finished('syscall_denied', null, 9), 159],
  ['cancelled while it ran', finished('cancelled', null, 9), 130],
  ['no sandbox', finished('setup_failed'), 125],
  ['executor lost', finished('executor_lost'), 125],
  ['rejected', { kind: 'rejected' } as JobResult, 126],
  ['cancelled before it started', { kind: 'cancelled' } as JobResult, 130],
];

describe('exit codes', () => {
  for (const [name, result, code] of cases)
    it(`${name}: ${code}`, () => assert.equal(exitCodeOf(result), code));

  it('no two rows of the table have one code', () => {
    const codes = Object.values(exitCodes).map(({ code }) => code);
    assert.equal(new Set(codes).size, codes.length);
  });
});
