/** The whole record of a job, gathered from its events. Pure: what an event does not say is null, never a guess. */
import type { AnyEvent, Entry, JobResult } from '../client/index.ts';
import { resultOf } from '../client/index.ts';

type EventOf<N extends AnyEvent['name']> = Extract<AnyEvent, { name: N }>['value'];

export interface JobRecord {
  readonly jobId: string;
  readonly tenant: string;
  readonly submitted: EventOf<'JobSubmitted'> | null;
  readonly verified: EventOf<'JobVerified'> | null;
  readonly routed: EventOf<'JobRouted'> | null;
  /** One for each attempt. */
  readonly started: readonly EventOf<'JobStarted'>[];
  readonly cancelRequests: readonly EventOf<'JobCancelRequested'>[];
  /** Results that came too late: another one had won. */
  readonly superseded: readonly EventOf<'JobFinished'>[];
  readonly result: JobResult | null;
  /** All of them, in the order of the ledger. */
  readonly entries: readonly Entry[];
}

export function recordOf(jobId: string, tenant: string, entries: readonly Entry[]): JobRecord {
  const all = <N extends AnyEvent['name']>(name: N, kind: string): EventOf<N>[] =>
    entries.flatMap(({ record, event }) =>
      event?.name === name && record.kind === kind ? [event.value as EventOf<N>] : [],
    );
  return {
    jobId,
    tenant,
    submitted: all('JobSubmitted', 'submitted')[0] ?? null,
    verified: all('JobVerified', 'verified')[0] ?? null,
    routed: all('JobRouted', 'routed')[0] ?? null,
    started: all('JobStarted', 'started'),
    cancelRequests: all('JobCancelRequested', 'cancel-requested'),
    superseded: all('JobFinished', 'superseded'),
    result: entries.map(resultOf).find((found) => found !== null) ?? null,
    entries,
  };
}

/** What a step says beside its name, in a few words. */
export function sayStep({ event, fault }: Entry): string {
  if (event === null) return fault ?? '';
  switch (event.name) {
    case 'JobVerified':
      return `trust store ${event.value.trustStoreVersion}`;
    case 'JobRouted':
      return `${event.value.runtime}.${event.value.deviceClass}, by its ${event.value.decidedBy}`;
    case 'JobStarted':
      return `attempt ${event.value.attempt} on ${event.value.executor}`;
    case 'JobRejected':
      return `${event.value.stage}: ${event.value.reason}`;
    case 'JobFinished':
      return [event.value.outcome.replaceAll('_', '-'), event.value.error?.step].filter(Boolean).join(': ');
    case 'JobCancelled':
    case 'JobCancelRequested':
      return `${event.value.requestedBy}: ${event.value.reason}`;
    case 'JobDeadLettered':
      return `${event.value.service}: ${event.value.reason}`;
    default:
      return '';
  }
}

/** Devices that are a GPU's, of those that DESIGN lets a GPU job have. */
const gpuPattern = /^\/dev\/(nvidia|kfd|dri\/)/;

export function gpuAccessesOf({ devices }: EventOf<'JobFinished'>) {
  return devices.accesses.filter(({ device }) => gpuPattern.test(device));
}
