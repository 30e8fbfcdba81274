/**
 * Every exit code, in one table: the help of each command and the manual are made of it. `run` and `wait` exit as the
 * plugin did; the codes for what Sandbus itself has to say are those that timeout(1), env(1) and shells use.
 */
import type { JobResult } from '../client/index.ts';

export const exitCodes = {
  ok: { code: 0, meaning: 'done (run, wait: the plugin exited with 0)' },
  failed: { code: 1, meaning: 'the answer is no: not verified, not as expected, something is missing' },
  usage: { code: 2, meaning: 'wrong options, arguments, files or configuration' },
  notFound: { code: 4, meaning: 'there is no such job or record' },
  unavailable: {
    code: 69,
    meaning: 'NATS or a service does not answer, or standard output cannot be written',
  },
  busFull: { code: 75, meaning: 'the bus is full: try again later' },
  timeLimit: { code: 124, meaning: 'run, wait: the plugin exceeded its wall-clock limit' },
  notRun: {
    code: 125,
    meaning:
      'run, wait: Sandbus failed, not the plugin (wrong options of run, no server, set-up, lost output)',
  },
  rejected: { code: 126, meaning: 'run, wait: the job was rejected, the plugin did not run' },
  cancelled: { code: 130, meaning: 'run, wait: the job was cancelled' },
  memoryLimit: { code: 137, meaning: 'run, wait: the plugin exceeded its memory limit' },
  brokenPipe: { code: 141, meaning: 'whoever read our standard output has gone' },
  cpuLimit: { code: 152, meaning: 'run, wait: the plugin exceeded its CPU time' },
  outputLimit: { code: 153, meaning: 'run, wait: the plugin wrote more than its output limit' },
  syscallDenied: { code: 159, meaning: 'run, wait: the plugin was ended because of a refused system call' },
} as const satisfies Record<string, { code: number; meaning: string }>;

export type ExitName = keyof typeof exitCodes;

export const exitCode = (name: ExitName): number => exitCodes[name].code;

/** What `run` and `wait` exit with: the plugin's own code, 128 + its signal, or one of the table. */
export function exitCodeOf(result: JobResult): number {
  if (result.kind === 'rejected') return exitCode('rejected');
  if (result.kind === 'cancelled') return exitCode('cancelled');
  const { outcome, exitCode: code, signal } = result.event;
  switch (outcome) {
    case 'exited':
      return code ?? exitCode('notRun');
    case 'signaled':
      return 128 + (signal ?? 0);
    case 'wall_time_exceeded':
      return exitCode('timeLimit');
    case 'cpu_time_exceeded':
      return exitCode('cpuLimit');
    case 'memory_exceeded':
      return exitCode('memoryLimit');
    case 'output_exceeded':
      return exitCode('outputLimit');
    case 'syscall_denied':
      return exitCode('syscallDenied');
    case 'cancelled':
      return exitCode('cancelled');
    case 'setup_failed':
    case 'executor_lost':
      return exitCode('notRun');
  }
}
