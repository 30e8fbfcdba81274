/** Rows of the ledger and where they came from. Statements only: what is written when, ledger.ts decides. */
import type { DatabaseSync } from 'node:sqlite';
import type { AuditRecord } from '../platform/codec.ts';
import type { Cause, JobRef } from '../platform/topology.ts';

const columns = `sequence, tenant_sequence AS tenantSequence, recorded_at AS recordedAt, tenant, job_id AS jobId, kind,
  subject, event_id AS eventId, signer, signature, traceparent, stream, stream_sequence AS streamSequence, payload,
  payload_salt AS payloadSalt, payload_hash AS payloadHash, previous_leaf_hash AS previousLeafHash,
  leaf_hash AS leafHash`;

/** What tells a redelivery from another message in the same place. */
export type Original = Pick<AuditRecord, 'sequence' | 'subject' | 'payload'>;

export class RecordStore {
  readonly #statements: ReturnType<typeof prepare>;

  constructor(database: DatabaseSync) {
    this.#statements = prepare(database);
  }

  /** Records in the ledger; also the next sequence. */
  size(): number {
    return Number(this.#statements.size.get()?.size ?? 0);
  }

  nextTenantSequence(tenant: string): number {
    return Number(this.#statements.tenantSize.get(tenant)?.size ?? 0);
  }

  /** When the newest record was made, microseconds; 0 in an empty ledger. */
  lastRecordedAt(): number {
    return Number(this.#statements.lastRecordedAt.get()?.at ?? 0);
  }

  insert(record: AuditRecord, epoch: number): void {
    const { sequence, tenant, tenantSequence, jobId, kind, recordedAt, subject, eventId, signer } = record;
    const { signature, traceparent, stream, streamSequence, payload } = record;
    const { payloadSalt, payloadHash, previousLeafHash, leafHash } = record;
    this.#statements.insert.run(
      ...[sequence, tenant, tenantSequence, jobId, kind, recordedAt, subject, eventId, signer],
      ...[signature, traceparent, stream, epoch, streamSequence, payload],
      ...[payloadSalt, payloadHash, previousLeafHash, leafHash],
    );
  }

  /** The record made of this message. */
  ofMessage(message: Cause, epoch: number): AuditRecord | null {
    return row(this.#statements.ofMessage.get(message.stream, epoch, message.sequence));
  }

  /** True when the message was recorded, or repeated an event that was. */
  holds(message: Cause, epoch: number): boolean {
    const place = [message.stream, epoch, message.sequence];
    return this.#statements.holds.get(...place, ...place) !== undefined;
  }

  ofEvent(eventId: string): AuditRecord | null {
    return row(this.#statements.ofEvent.get(eventId));
  }

  /** Notes a message that repeats the event of `sequence`; its bytes only where they differ. */
  insertDuplicate(message: Cause, epoch: number, sequence: number, payload: Uint8Array | null): void {
    this.#statements.insertDuplicate.run(message.stream, epoch, message.sequence, sequence, payload);
  }

  /** The same for a message that repeated an event. */
  duplicateOf(message: Cause, epoch: number): Original | null {
    const found = this.#statements.duplicateOf.get(message.stream, epoch, message.sequence);
    return found === undefined ? null : (found as unknown as Original);
  }

  /** From `sequence` on, as long as the caller takes them. */
  from(sequence: number): Iterable<AuditRecord> {
    return this.#statements.from.iterate(sequence) as Iterable<unknown> as Iterable<AuditRecord>;
  }

  ofTenant(tenant: string, afterTenantSequence: number): Iterable<AuditRecord> {
    return this.#statements.ofTenant.iterate(
      tenant,
      afterTenantSequence,
    ) as Iterable<unknown> as Iterable<AuditRecord>;
  }

  ofJob(job: JobRef, afterTenantSequence: number): Iterable<AuditRecord> {
    const rows = this.#statements.ofJob.iterate(job.tenant, job.jobId, afterTenantSequence);
    return rows as Iterable<unknown> as Iterable<AuditRecord>;
  }

  epoch(stream: string): number {
    return Number(this.#statements.epoch.get(stream)?.epoch ?? 0);
  }

  /** The stream began again: its sequences mean other messages from now on. */
  raiseEpoch(stream: string): number {
    this.#statements.raiseEpoch.run(stream);
    return this.epoch(stream);
  }
}

function prepare(database: DatabaseSync) {
  const ordered = (where: string, order: string) =>
    database.prepare(`SELECT ${columns} FROM record WHERE ${where} ORDER BY ${order}`);
  return {
    size: database.prepare('SELECT coalesce(max(sequence) + 1, 0) AS size FROM record'),
    tenantSize: database.prepare(
      'SELECT coalesce(max(tenant_sequence) + 1, 0) AS size FROM record WHERE tenant = ?',
    ),
    lastRecordedAt: database.prepare('SELECT recorded_at AS at FROM record ORDER BY sequence DESC LIMIT 1'),
    insert:
      database.prepare(`INSERT INTO record (sequence, tenant, tenant_sequence, job_id, kind, recorded_at, subject,
      event_id, signer, signature, traceparent, stream, stream_epoch, stream_sequence, payload,
      payload_salt, payload_hash, previous_leaf_hash, leaf_hash)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`),
    ofMessage: ordered('stream = ? AND stream_epoch = ? AND stream_sequence = ?', 'sequence'),
    ofEvent: ordered('event_id = ?', 'sequence'),
    holds:
      database.prepare(`SELECT 1 FROM record WHERE stream = ? AND stream_epoch = ? AND stream_sequence = ?
      UNION ALL SELECT 1 FROM duplicate WHERE stream = ? AND stream_epoch = ? AND stream_sequence = ?`),
    insertDuplicate: database.prepare('INSERT INTO duplicate VALUES (?, ?, ?, ?, ?)'),
    duplicateOf: database.prepare(`SELECT r.sequence, r.subject, coalesce(d.payload, r.payload) AS payload
      FROM duplicate d JOIN record r ON r.sequence = d.sequence
      WHERE d.stream = ? AND d.stream_epoch = ? AND d.stream_sequence = ?`),
    from: ordered('sequence >= ?', 'sequence'),
    ofTenant: ordered('tenant = ? AND tenant_sequence > ?', 'tenant_sequence'),
    ofJob: ordered('tenant = ? AND job_id = ? AND tenant_sequence > ?', 'tenant_sequence'),
    epoch: database.prepare('SELECT epoch FROM stream WHERE name = ?'),
    raiseEpoch: database.prepare(
      'INSERT INTO stream VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET epoch = epoch + 1',
    ),
  };
}

const row = (found: unknown): AuditRecord | null => (found === undefined ? null : (found as AuditRecord));
