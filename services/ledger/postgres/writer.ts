/**
 * Writing a ledger in PostgreSQL, by the one session that holds the advisory lock. A session can be lost without its
 * process knowing (paused, cut off, failed over), so every transaction also asks whether the epoch of the writer is still
 * the one that this session has raised, and holds it until its end; a commit, whether the tree is still the one on which
 * it was planned. Whoever takes over raises the epoch first, and so waits for transactions under way.
 */
import type pg from 'pg';
import { messageOf, OperationalError } from '../../platform/errors.ts';
import type { Cause, JobRef } from '../../platform/topology.ts';
import { consumers } from '../../platform/topology.ts';
import { headSql } from '../columns.ts';
import { checkHead, LostLedgerError } from '../faults.ts';
import { headOf } from '../rows.ts';
import type {
  BatchKeys,
  Changes,
  Deletion,
  FeedPosition,
  Head,
  Known,
  LedgerWriter,
  StoredCheckpoint,
  StoredSpan,
} from '../store.ts';
import * as bulk from './bulk.ts';
import { change, query } from './connection.ts';
import { eraseBefore, eraseJob } from './erasure.ts';
import { lookUp } from './look-up.ts';
import { PostgresReader } from './reader.ts';

/** The connection that holds the lock, and the epoch that it has raised. */
export interface WriterSession {
  readonly client: pg.Client;
  readonly epoch: number;
  /** What ended the connection, once something has. */
  readonly ended: Promise<Error>;
}

const currentEpoch = (alias: string) =>
  `${alias}.stream_epoch = coalesce((SELECT epoch FROM stream WHERE name = ${alias}.stream), 0)`;

export class PostgresWriter extends PostgresReader implements LedgerWriter {
  readonly lost: Promise<never>;
  readonly #session: WriterSession;
  #lostTo: LostLedgerError | null = null;
  #closing = false;
  /** One transaction after the other: they share the connection. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(pool: pg.Pool, session: WriterSession) {
    super(pool);
    this.#session = session;
    const { promise, reject } = Promise.withResolvers<never>();
    this.lost = promise;
    this.lost.catch(() => undefined);
    void session.ended.then((cause) => {
      if (this.#closing) return;
      this.#lostTo = sessionEnded(cause);
      reject(this.#lostTo);
    });
  }

  #transaction<T>(action: (client: pg.Client) => Promise<T>): Promise<T> {
    const done = this.#last.then(() => this.#run(action));
    this.#last = done.catch(() => undefined);
    return done;
  }

  async #run<T>(action: (client: pg.Client) => Promise<T>): Promise<T> {
    const { client, epoch } = this.#session;
    try {
      await change(client, 'BEGIN');
      const [found] = await query(client, 'SELECT epoch FROM writer FOR SHARE');
      if (found?.epoch !== epoch) throw takenOver(epoch, found?.epoch);
      const result = await action(client);
      await change(client, 'COMMIT');
      return result;
    } catch (error) {
      await change(client, 'ROLLBACK').catch(() => undefined);
      throw this.#verdict(error);
    }
  }

  /** A failed statement may pass; a connection that has ended has lost the lock with it. */
  #verdict(error: unknown): unknown {
    return error instanceof OperationalError ? (this.#lostTo ?? error) : error;
  }

  lookUp(keys: BatchKeys): Promise<Known> {
    return lookUp(this.pool, keys);
  }

  commit(changes: Changes): Promise<void> {
    return this.#transaction(async (client) => {
      await expect(client, changes.onto);
      for (const [stream, epoch] of changes.epochs) await beginAnew(client, stream, epoch);
      await bulk.insertRecords(client, changes.records);
      await bulk.insertSubtrees(client, changes.subtrees);
      await bulk.insertDuplicates(client, changes.duplicates);
      await bulk.writeJobs(client, changes.jobs);
      await bulk.insertDeletions(client, changes.deletions);
      await deleteJobs(client, changes.endedJobs);
    });
  }

  async readyDeletions(limit: number): Promise<Cause[]> {
    const sql = 'SELECT stream, stream_sequence AS sequence FROM deletion WHERE awaits IS NULL LIMIT $1';
    return (await query(this.pool, sql, [limit])) as unknown as Cause[];
  }

  async isDeletable({ stream, sequence }: Cause): Promise<boolean> {
    const sql = 'SELECT 1 FROM deletion WHERE stream = $1 AND stream_sequence = $2';
    return (await query(this.pool, sql, [stream, sequence])).length > 0;
  }

  noteDeletions(deletions: readonly Deletion[]): Promise<void> {
    return this.#transaction((client) => bulk.insertDeletions(client, deletions));
  }

  async deletionsDone(messages: readonly Cause[]): Promise<void> {
    const sql = `DELETE FROM deletion
      WHERE (stream, stream_sequence) IN (SELECT * FROM unnest($1::text[], $2::bigint[]))`;
    const places = [messages.map(({ stream }) => stream), messages.map(({ sequence }) => sequence)];
    await this.#transaction((client) => change(client, sql, places));
  }

  async awaitedConsumers(): Promise<string[]> {
    const rows = await query(this.pool, 'SELECT DISTINCT awaits FROM deletion WHERE awaits IS NOT NULL');
    return rows.map(({ awaits }) => awaits as string);
  }

  async liftWaits(durable: string, floor: number): Promise<void> {
    const sql = 'UPDATE deletion SET awaits = NULL WHERE awaits = $1 AND stream_sequence <= $2';
    await this.#transaction((client) => change(client, sql, [durable, floor]));
  }

  async feedPosition(): Promise<FeedPosition | null> {
    const sql = 'SELECT ledger_sequence AS "ledgerSequence", stream_sequence AS "streamSequence" FROM feed';
    const [row] = await query(this.pool, sql);
    return row === undefined ? null : (row as unknown as FeedPosition);
  }

  async saveFeedPosition({ ledgerSequence, streamSequence }: FeedPosition): Promise<void> {
    const sql = `INSERT INTO feed VALUES (0, $1, $2) ON CONFLICT (id)
      DO UPDATE SET ledger_sequence = excluded.ledger_sequence, stream_sequence = excluded.stream_sequence`;
    await this.#transaction((client) => change(client, sql, [ledgerSequence, streamSequence]));
  }

  async addCheckpoint({ treeSize, rootHash, at, note }: StoredCheckpoint): Promise<void> {
    const sql = `INSERT INTO checkpoint (tree_size, root_hash, signed_at, note) VALUES ($1, $2, $3, $4)
      ON CONFLICT DO NOTHING`;
    await this.#transaction((client) => change(client, sql, [treeSize, rootHash, at, note]));
  }

  addSpans(spans: readonly StoredSpan[]): Promise<void> {
    return this.#transaction((client) => bulk.insertSpans(client, spans));
  }

  eraseJob(job: JobRef): Promise<number> {
    return this.#transaction((client) => eraseJob(client, job));
  }

  erasePayloads(recordedBefore: number, limit: number): Promise<number> {
    return this.#transaction((client) => eraseBefore(client, recordedBefore, limit));
  }

  removeSpans(endedBefore: number, limit: number): Promise<number> {
    const sql = `DELETE FROM span WHERE (trace_id, span_id) IN
      (SELECT trace_id, span_id FROM span WHERE end_micros < $1 ORDER BY end_micros LIMIT $2)`;
    return this.#transaction((client) => change(client, sql, [endedBefore, limit]));
  }

  /** Ends the session, and with it gives the lock back. */
  override async close(): Promise<void> {
    this.#closing = true;
    await this.#last;
    await this.#session.client.end().catch(() => undefined);
    await super.close();
  }
}

const sessionEnded = (cause: Error): LostLedgerError =>
  new LostLedgerError(
    `the session with PostgreSQL that holds the lock of the ledger has ended (${messageOf(cause)})`,
  );

const takenOver = (epoch: number, found: unknown): LostLedgerError =>
  new LostLedgerError(`another audit service has taken over (writer epoch ${found}, this one has ${epoch})`);

async function expect(client: pg.Client, onto: Pick<Head, 'size' | 'lastLeafHash'>): Promise<void> {
  const [last] = await query(client, headSql);
  checkHead(headOf(last), onto);
}

async function beginAnew(client: pg.Client, stream: string, epoch: number): Promise<void> {
  const sql = 'INSERT INTO stream VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET epoch = excluded.epoch';
  await change(client, sql, [stream, epoch]);
  await change(client, 'DELETE FROM deletion WHERE stream = $1', [stream]);
}

/** Every message of the jobs, repetitions included. */
async function deleteJobs(client: pg.Client, jobs: readonly JobRef[]): Promise<void> {
  if (jobs.length === 0) return;
  const asked = [jobs.map(({ tenant }) => tenant), jobs.map(({ jobId }) => jobId)];
  const ended = 'unnest($1::text[], $2::text[]) AS ended (tenant, job_id)';
  const ofEnded = 'r.tenant = ended.tenant AND r.job_id = ended.job_id';
  await change(
    client,
    `INSERT INTO deletion SELECT r.stream, r.stream_sequence, CASE WHEN r.stream <> 'SUBMISSIONS' THEN NULL
        WHEN r.subject LIKE 'job.submitted.%' THEN $3 ELSE $4 END
      FROM ${ended} JOIN record r ON ${ofEnded} WHERE ${currentEpoch('r')} ON CONFLICT DO NOTHING`,
    [...asked, consumers.verifier.durable, consumers.routerCancels.durable],
  );
  await change(
    client,
    `INSERT INTO deletion SELECT d.stream, d.stream_sequence, NULL FROM ${ended} JOIN record r ON ${ofEnded}
      JOIN duplicate d ON d.sequence = r.sequence WHERE ${currentEpoch('d')} ON CONFLICT DO NOTHING`,
    asked,
  );
}
