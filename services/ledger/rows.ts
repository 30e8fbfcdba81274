/** Values of rows in the order of `written` in columns.ts, and rows as they come back. */
import type { AuditRecord } from '../platform/codec.ts';
import type { Head, JobRow, NewRecord, StoredSpan } from './store.ts';

export type Cell = string | number | Uint8Array | null;

export function recordCells({ record, epoch }: NewRecord): Cell[] {
  return [
    record.sequence,
    record.tenant,
    record.tenantSequence,
    record.jobId,
    record.kind,
    record.recordedAt,
    record.subject,
    record.eventId,
    record.signer,
    record.signature,
    record.traceparent,
    record.stream,
    epoch,
    record.streamSequence,
    record.payload,
    record.payloadSalt,
    record.payloadHash,
    record.previousLeafHash,
    record.leafHash,
  ];
}

export function jobCells(job: JobRow): Cell[] {
  const { tenant, jobId, firstSequence, lastLeafHash, terminalSequence, state, plugin, pluginSha256 } = job;
  const { runtime, outcome, reason, submittedAtMs, updatedAtMs, traceId } = job;
  return [
    ...[tenant, jobId, firstSequence, lastLeafHash, terminalSequence, state, plugin, pluginSha256],
    ...[JSON.stringify(job.keyIds), runtime, outcome, reason, submittedAtMs, updatedAtMs, traceId],
  ];
}

/** In the order of `jobProgress`. */
export const jobProgressCells = (job: JobRow): Cell[] => [
  job.lastLeafHash,
  job.terminalSequence,
  job.state,
  job.runtime,
  job.reason,
  job.updatedAtMs,
];

/** In the order of `jobMore`. */
export const jobMoreCells = (job: JobRow): Cell[] => [
  ...jobProgressCells(job),
  job.plugin,
  job.pluginSha256,
  JSON.stringify(job.keyIds),
  job.outcome,
];

export function spanCells(span: StoredSpan): Cell[] {
  const { traceId, spanId, parentSpanId, service, name, kind, startMicros, endMicros } = span;
  return [
    ...[traceId, spanId, parentSpanId, service, name, kind, startMicros, endMicros],
    ...[span.status, span.statusMessage, JSON.stringify(span.attributes), JSON.stringify(span.links)],
  ];
}

/** A row of a query with the columns of the type; JSON columns as text. */
export type Row = Record<string, unknown>;

/** Of the row that `headSql` gives; there is none in an empty ledger. */
export function headOf(last: Row | undefined): Head {
  if (last === undefined) return { size: 0, lastLeafHash: new Uint8Array(), recordedAt: 0 };
  const { sequence, leafHash, recordedAt } = last as {
    sequence: number;
    leafHash: Uint8Array;
    recordedAt: number;
  };
  return { size: sequence + 1, lastLeafHash: leafHash, recordedAt };
}

export const recordOf = (row: Row): AuditRecord => row as unknown as AuditRecord;

export const jobOf = (row: Row): JobRow =>
  ({ ...row, keyIds: JSON.parse(String(row.keyIds)) }) as unknown as JobRow;

export const spanOf = (row: Row): StoredSpan =>
  ({
    ...row,
    attributes: JSON.parse(String(row.attributes)),
    links: JSON.parse(String(row.links)),
  }) as unknown as StoredSpan;
