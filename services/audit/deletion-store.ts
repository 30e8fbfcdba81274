/**
 * Which messages may leave the bus. An event leaves after it is committed and its job has ended, so these rows are
 * written in the transaction that commits, and outlive a restart.
 */
import type { DatabaseSync } from 'node:sqlite';
import type { Cause, JobRef } from '../platform/topology.ts';
import { consumers } from '../platform/topology.ts';

/**
 * The consumer of SUBMISSIONS whose turn at this message must be over: a duplicate submission still becomes a dead
 * letter, and a late cancel is still answered.
 */
export function consumerOf(stream: string, subject: string): string | null {
  if (stream !== 'SUBMISSIONS') return null;
  return subject.startsWith('job.submitted.') ? consumers.verifier.durable : consumers.routerCancels.durable;
}

export class DeletionStore {
  readonly #statements: ReturnType<typeof prepare>;

  constructor(database: DatabaseSync) {
    this.#statements = prepare(database);
  }

  /** `awaits` is the consumer that must have acked the message first; a second word can only lift that wait. */
  add(message: Cause, awaits: string | null): void {
    this.#statements.add.run(message.stream, message.sequence, awaits);
  }

  /** Every message of the job, repetitions included. */
  addJob(job: JobRef): void {
    this.#statements.addJob.run(
      consumers.verifier.durable,
      consumers.routerCancels.durable,
      job.tenant,
      job.jobId,
    );
    this.#statements.addDuplicatesOfJob.run(job.tenant, job.jobId);
  }

  has(message: Cause): boolean {
    return this.#statements.has.get(message.stream, message.sequence) !== undefined;
  }

  /** Messages that may go now. */
  ready(limit: number): Cause[] {
    return this.#statements.ready.all(limit) as unknown as Cause[];
  }

  /** Consumers that some messages wait for. */
  awaited(): string[] {
    return this.#statements.awaited.all().map((found) => String(found.awaits));
  }

  /** Lifts the wait of those that `durable` has passed. */
  lift(durable: string, floor: number): void {
    this.#statements.lift.run(durable, floor);
  }

  done(message: Cause): void {
    this.#statements.done.run(message.stream, message.sequence);
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
