/** What the events of a job say about it, pure. Bodies come from strangers: one that does not decode says nothing. */
import type { AuditRecord, EventName, Events } from '../platform/codec.ts';
import { decodeAs } from '../platform/codec.ts';
import { parseTraceparent } from '../platform/traceparent.ts';
import type { JobRow } from './store.ts';

type Facts = Partial<
  Pick<JobRow, 'state' | 'plugin' | 'pluginSha256' | 'keyIds' | 'runtime' | 'outcome' | 'reason'>
>;

const rank = {
  submitted: 1,
  verified: 2,
  routed: 3,
  started: 4,
  finished: 5,
  rejected: 5,
  cancelled: 5,
} as const;
const longestText = 512;
/** More signatures than any plugin has. */
const mostKeyIds = 32;

/** The job after `record`; `job` is null for its first. */
export function afterRecord(job: JobRow | null, record: AuditRecord): JobRow {
  const updatedAtMs = Math.floor(record.recordedAt / 1000);
  const before = job ?? emptyRow(record);
  const said = before.terminalSequence === null ? factsIn(record) : null;
  if (said === null) return { ...before, lastLeafHash: record.leafHash, updatedAtMs };
  const advances = said.state != null && rank[said.state] > (before.state === null ? 0 : rank[before.state]);
  return {
    ...before,
    // A second submission of the same id, or a late event, may not rewrite what is known.
    ...(advances ? said : null),
    lastLeafHash: record.leafHash,
    updatedAtMs,
    submittedAtMs: before.submittedAtMs ?? (record.kind === 'submitted' ? updatedAtMs : null),
    traceId: before.traceId ?? parseTraceparent(record.traceparent)?.traceId ?? null,
    terminalSequence: advances && said.state != null && rank[said.state] === 5 ? record.sequence : null,
  };
}

function emptyRow(record: AuditRecord): JobRow {
  return {
    tenant: record.tenant,
    jobId: record.jobId,
    firstSequence: record.sequence,
    lastLeafHash: record.leafHash,
    terminalSequence: null,
    state: null,
    plugin: null,
    pluginSha256: null,
    keyIds: [],
    runtime: null,
    outcome: null,
    reason: null,
    submittedAtMs: null,
    updatedAtMs: 0,
    traceId: null,
  };
}

/** What the event says, or null when its body is not the event that its subject promises. */
function factsIn(record: AuditRecord): Facts | null {
  switch (record.kind) {
    case 'submitted':
      return facts(record, 'JobSubmitted', (event) => ({
        state: 'submitted',
        plugin: text(event.plugin.name),
      }));
    case 'verified':
      return facts(record, 'JobVerified', (event) => ({
        state: 'verified',
        plugin: text(event.plugin.name),
        pluginSha256: text(event.plugin.sha256),
        keyIds: event.keyIds.slice(0, mostKeyIds).map(text),
        runtime: event.signedRuntime,
      }));
    case 'routed':
      return facts(record, 'JobRouted', (event) => ({ state: 'routed', runtime: event.runtime }));
    case 'started':
      return facts(record, 'JobStarted', (event) => ({ state: 'started', runtime: event.runtime }));
    case 'rejected':
      return facts(record, 'JobRejected', (event) => ({ state: 'rejected', reason: text(event.reason) }));
    case 'cancelled':
      return facts(record, 'JobCancelled', (event) => ({ state: 'cancelled', reason: text(event.reason) }));
    case 'finished':
      return facts(record, 'JobFinished', (event) => ({
        state: 'finished',
        runtime: event.runtime,
        outcome: event.outcome,
        reason: event.error === null ? null : text(`${event.error.step}: ${event.error.message}`),
      }));
    default:
      return null;
  }
}

function facts<N extends EventName>(
  record: AuditRecord,
  name: N,
  tell: (event: Events[N]) => Facts,
): Facts | null {
  const event = decoded(name, record.payload);
  if (event === null) return null;
  const { tenant, jobId } = event as { tenant?: string; jobId?: string };
  return tenant === record.tenant && jobId === record.jobId ? tell(event) : null;
}

/** Why a message is a dead letter; null where that cannot be read. */
export const deadLetterReason = (payload: Uint8Array): string | null =>
  decoded('JobDeadLettered', payload)?.reason ?? null;

/** Null for whatever does not decode, for any reason: the ledger goes on. */
function decoded<N extends EventName>(name: N, payload: Uint8Array | null): Events[N] | null {
  try {
    return payload === null ? null : decodeAs(name, payload);
  } catch {
    return null;
  }
}

const text = (value: string): string => value.slice(0, longestText);
