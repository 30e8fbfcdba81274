/** Does what the schedule says to the parts of a running system. */
import { setTimeout as delay } from 'node:timers/promises';
import type { System } from '../../services/cli/system.ts';
import type { Fault } from './schedule.ts';

export interface FaultLog {
  /** Process ids of executors that were killed or stood still: jobs of these may be lost. */
  readonly brokenExecutors: ReadonlySet<number>;
  readonly done: number;
  /** Resolves when every fault has happened and every frozen process goes on. */
  readonly finished: Promise<void>;
}

export function inflict(
  faults: readonly Fault[],
  system: System,
  say: (text: string) => void,
  ended: AbortSignal,
): FaultLog {
  const broken = new Set<number>();
  const state = { done: 0 };
  const began = performance.now();
  const one = async (fault: Fault) => {
    await delay(fault.atMs, undefined, { signal: ended });
    const pid = await runningPid(system, fault, ended);
    const second = ((performance.now() - began) / 1000).toFixed(1);
    say(`${second} s: ${fault.kind} ${fault.part} (${pid})`);
    if (fault.part.startsWith('executor')) broken.add(pid);
    state.done++;
    if (fault.kind === 'kill') return signal(pid, 'SIGKILL');
    signal(pid, 'SIGSTOP');
    await delay(fault.forMs, undefined, { signal: ended }).finally(() => signal(pid, 'SIGCONT'));
  };
  return {
    brokenExecutors: broken,
    get done() {
      return state.done;
    },
    finished: Promise.all(faults.map(one)).then(() => undefined),
  };
}

/** A part that is just being started again dies when it is there. */
async function runningPid(system: System, { part }: Fault, ended: AbortSignal): Promise<number> {
  for (;;) {
    const pid = system.pidOf(part);
    if (pid > 0) return pid;
    await delay(50, undefined, { signal: ended });
  }
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
