/** Rows about which messages may leave the bus. */
import type { DatabaseSync } from 'node:sqlite';
import type { Cause, JobRef } from '../../platform/topology.ts';
import { consumers } from '../../platform/topology.ts';
import type { Deletion } from '../store.ts';

export class Deletions {
  readonly #statements: ReturnType<typeof prepare>;
  #duplicatesSeen = false;

  constructor(database: DatabaseSync) {
    this.#statements = prepare(database);
  }

  add({ stream, sequence, awaits }: Deletion): void {
    this.#statements.add.run(stream, sequence, awaits);
  }

  /** Every message of the job, repetitions included. */
  addJob({ tenant, jobId }: JobRef): void {
    this.#statements.addJob.run(consumers.verifier.durable, consumers.routerCancels.durable, tenant, jobId);
    if (this.#hasDuplicates()) this.#statements.addDuplicatesOfJob.run(tenant, jobId);
  }

  has({ stream, sequence }: Cause): boolean {
    return this.#statements.has.get(stream, sequence) !== undefined;
  }

  ready(limit: number): Cause[] {
    return this.#statements.ready.all(limit) as unknown as Cause[];
  }

  awaited(): string[] {
    return this.#statements.awaited.all().map((found) => String(found.awaits));
  }

  lift(durable: string, floor: number): void {
    this.#statements.lift.run(durable, floor);
  }

  done({ stream, sequence }: Cause): void {
    this.#statements.done.run(stream, sequence);
  }

  /** Once there is one there always is. */
  #hasDuplicates(): boolean {
    this.#duplicatesSeen ||= this.#statements.anyDuplicate.get() !== undefined;
    return this.#duplicatesSeen;
  }

  /** The stream is gone, and its messages with it. */
  forgetStream(stream: string): void {
    this.#statements.forgetStream.run(stream);
  }
}

function prepare(database: DatabaseSync) {
  const currentEpoch = (alias: string) =>
    `${alias}.stream_epoch = coalesce((SELECT epoch FROM stream WHERE name = ${alias}.stream), 0)`;
  return {
    add: database.prepare(
      'INSERT INTO deletion VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET awaits = iif(excluded.awaits IS NULL, NULL, awaits)',
    ),
    addJob: database.prepare(`INSERT OR IGNORE INTO deletion
      SELECT r.stream, r.stream_sequence, CASE WHEN r.stream <> 'SUBMISSIONS' THEN NULL
        WHEN r.subject LIKE 'job.submitted.%' THEN ? ELSE ? END
      FROM record r WHERE r.tenant = ? AND r.job_id = ? AND ${currentEpoch('r')}`),
    addDuplicatesOfJob: database.prepare(`INSERT OR IGNORE INTO deletion
      SELECT d.stream, d.stream_sequence, NULL FROM record r JOIN duplicate d ON d.sequence = r.sequence
      WHERE r.tenant = ? AND r.job_id = ? AND ${currentEpoch('d')}`),
    anyDuplicate: database.prepare('SELECT 1 FROM duplicate LIMIT 1'),
    has: database.prepare('SELECT 1 FROM deletion WHERE stream = ? AND stream_sequence = ?'),
    ready: database.prepare(
      'SELECT stream, stream_sequence AS sequence FROM deletion WHERE awaits IS NULL LIMIT ?',
    ),
    awaited: database.prepare('SELECT DISTINCT awaits FROM deletion WHERE awaits IS NOT NULL'),
    lift: database.prepare('UPDATE deletion SET awaits = NULL WHERE awaits = ? AND stream_sequence <= ?'),
    done: database.prepare('DELETE FROM deletion WHERE stream = ? AND stream_sequence = ?'),
    forgetStream: database.prepare('DELETE FROM deletion WHERE stream = ?'),
  };
}
