/** The parts of a JobFinished of which nothing is known: unavailable with the reason, never zero passed off as a count. */
import type { JobFinished } from '../../schemas/generated/events.ts';

export type Accounts = Pick<JobFinished, 'syscalls' | 'denials' | 'probes' | 'executions' | 'devices'>;

export const noUsage: JobFinished['usage'] = {
  wallMicros: 0,
  userMicros: 0,
  systemMicros: 0,
  peakMemoryBytes: null,
  peakProcesses: null,
  throttledMicros: 0,
  stdinBytes: 0,
  oomKills: 0,
  oomVictims: [],
};

export function noAccounts(unavailableReason: string): Accounts {
  return {
    syscalls: { available: false, unavailableReason, total: 0, counts: {} },
    denials: [],
    probes: [],
    executions: { available: false, unavailableReason, dropped: 0, entries: [] },
    devices: { available: false, unavailableReason, accesses: [] },
  };
}
