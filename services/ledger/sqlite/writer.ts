/** Writing a ledger in SQLite, by the one process that holds its lock file. */
import type { DatabaseSync } from 'node:sqlite';
import type { Cause, JobRef } from '../../platform/topology.ts';
import { jobMore, jobProgress, jobUpdate, written } from '../columns.ts';
import { checkHead } from '../faults.ts';
import { jobKey } from '../keys.ts';
import { jobCells, jobMoreCells, jobProgressCells, recordCells, spanCells } from '../rows.ts';
import type {
  BatchKeys,
  Changes,
  Deletion,
  FeedPosition,
  JobRow,
  Known,
  LedgerWriter,
  StoredCheckpoint,
  StoredSpan,
} from '../store.ts';
import { inLooseTransaction, inTransaction, reading, readingMuch } from './database.ts';
import { Deletions } from './deletions.ts';
import { Erasure } from './erasure.ts';
import { LookUp } from './look-up.ts';
import { SqliteReader } from './reader.ts';
import { RecentWrites } from './recent-writes.ts';

export class SqliteWriter extends SqliteReader implements LedgerWriter {
  /** A lock file is held until its process ends. */
  readonly lost: Promise<never> = new Promise(() => undefined);
  readonly #lock: { close(): void };
  readonly #statements: ReturnType<typeof prepare>;
  readonly #recent = new RecentWrites();
  readonly #lookUp: LookUp;
  readonly #deletions: Deletions;
  readonly #erasure: Erasure;

  /** `lock` is held until this is closed. */
  constructor(database: DatabaseSync, lock: { close(): void }) {
    super(database);
    this.#lock = lock;
    this.#statements = prepare(database);
    this.#lookUp = new LookUp(database, this.#recent);
    this.#deletions = new Deletions(database);
    this.#erasure = new Erasure(database);
  }

  async lookUp(keys: BatchKeys): Promise<Known> {
    return readingMuch(this.database, () => this.#lookUp.known(keys, this.headNow()));
  }

  async commit(changes: Changes): Promise<void> {
    inTransaction(this.database, () => {
      // The lock keeps other writers away; this, a file that somebody has put in the place of this one.
      checkHead(this.headNow(), changes.onto);
      for (const [stream, epoch] of changes.epochs) {
        this.#statements.setEpoch.run(stream, epoch);
        this.#deletions.forgetStream(stream);
      }
      this.#addToTree(changes);
      for (const job of changes.jobs) this.#writeJob(job);
      for (const deletion of changes.deletions) this.#deletions.add(deletion);
      for (const job of changes.endedJobs) this.#deletions.addJob(job);
    });
    this.#recent.add(changes);
  }

  #addToTree({ records, subtrees, duplicates }: Changes): void {
    for (const record of records) this.#statements.record.run(...recordCells(record));
    for (const { level, number, hash } of subtrees) this.#statements.subtree.run(level, number, hash);
    for (const { stream, epoch, sequence, of, payload } of duplicates)
      this.#statements.duplicate.run(stream, epoch, sequence, of, payload);
  }

  #writeJob(job: JobRow): void {
    const before = this.#recent.job(jobKey(job));
    const { tenant, jobId } = job;
    if (before === undefined || isFoundOtherwise(before, job)) this.#statements.job.run(...jobCells(job));
    else if (onlyGoesOn(before, job)) this.#statements.jobGoesOn.run(...jobProgressCells(job), tenant, jobId);
    else this.#statements.jobHasMore.run(...jobMoreCells(job), tenant, jobId);
    if (before?.keyIds === job.keyIds) return;
    for (const keyId of job.keyIds) this.#statements.jobKey.run(keyId, job.firstSequence);
  }

  async readyDeletions(limit: number): Promise<Cause[]> {
    return reading(() => this.#deletions.ready(limit));
  }

  async isDeletable(message: Cause): Promise<boolean> {
    return reading(() => this.#deletions.has(message));
  }

  async noteDeletions(deletions: readonly Deletion[]): Promise<void> {
    inTransaction(this.database, () => deletions.forEach((one) => void this.#deletions.add(one)));
  }

  async deletionsDone(messages: readonly Cause[]): Promise<void> {
    inLooseTransaction(this.database, () => messages.forEach((one) => void this.#deletions.done(one)));
  }

  async awaitedConsumers(): Promise<string[]> {
    return reading(() => this.#deletions.awaited());
  }

  async liftWaits(durable: string, floor: number): Promise<void> {
    inTransaction(this.database, () => this.#deletions.lift(durable, floor));
  }

  async feedPosition(): Promise<FeedPosition | null> {
    return reading(() => (this.#statements.feed.get() as FeedPosition | undefined) ?? null);
  }

  async saveFeedPosition({ ledgerSequence, streamSequence }: FeedPosition): Promise<void> {
    inLooseTransaction(this.database, () => this.#statements.saveFeed.run(ledgerSequence, streamSequence));
  }

  async addCheckpoint({ treeSize, rootHash, at, note }: StoredCheckpoint): Promise<void> {
    inTransaction(this.database, () => this.#statements.checkpoint.run(treeSize, rootHash, at, note));
  }

  async addSpans(spans: readonly StoredSpan[]): Promise<void> {
    inTransaction(this.database, () =>
      spans.forEach((one) => void this.#statements.span.run(...spanCells(one))),
    );
  }

  async eraseJob(job: JobRef): Promise<number> {
    return this.#erasure.job(job);
  }

  async erasePayloads(recordedBefore: number, limit: number): Promise<number> {
    return this.#erasure.before(recordedBefore, limit);
  }

  async removeSpans(endedBefore: number, limit: number): Promise<number> {
    return inTransaction(this.database, () =>
      Number(this.#statements.removeSpans.run(endedBefore, limit).changes),
    );
  }

  override async close(): Promise<void> {
    await super.close();
    this.#lock.close();
  }
}

/** SQLite writes the indexes of all columns that a statement names, changed or not. This is about all of them. */
const isFoundOtherwise = (before: JobRow, after: JobRow): boolean =>
  before.submittedAtMs !== after.submittedAtMs || before.traceId !== after.traceId;

/** True when nothing changes by which jobs are found: then no index has to be written. */
const onlyGoesOn = (before: JobRow, after: JobRow): boolean =>
  before.plugin === after.plugin &&
  before.pluginSha256 === after.pluginSha256 &&
  before.keyIds === after.keyIds &&
  before.outcome === after.outcome;

function prepare(database: DatabaseSync) {
  const insert = (table: keyof typeof written, verb = 'INSERT') =>
    `${verb} INTO ${table} (${written[table].join(', ')}) VALUES (${written[table].map(() => '?').join(', ')})`;
  const update = (columns: readonly string[]) =>
    `UPDATE job SET ${columns.map((column) => `${column} = ?`).join(', ')} WHERE tenant = ? AND job_id = ?`;
  return {
    record: database.prepare(insert('record')),
    subtree: database.prepare('INSERT INTO subtree (level, number, hash) VALUES (?, ?, ?)'),
    duplicate: database.prepare(
      'INSERT INTO duplicate (stream, stream_epoch, stream_sequence, sequence, payload) VALUES (?, ?, ?, ?, ?)',
    ),
    setEpoch: database.prepare(
      'INSERT INTO stream (name, epoch) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET epoch = excluded.epoch',
    ),
    job: database.prepare(`${insert('job')} ON CONFLICT (tenant, job_id) DO UPDATE SET ${jobUpdate}`),
    jobGoesOn: database.prepare(update(jobProgress)),
    jobHasMore: database.prepare(update(jobMore)),
    jobKey: database.prepare('INSERT OR IGNORE INTO job_key (key_id, first_sequence) VALUES (?, ?)'),
    feed: database.prepare(
      'SELECT ledger_sequence AS ledgerSequence, stream_sequence AS streamSequence FROM feed',
    ),
    saveFeed: database.prepare('INSERT OR REPLACE INTO feed VALUES (0, ?, ?)'),
    checkpoint: database.prepare(
      'INSERT OR IGNORE INTO checkpoint (tree_size, root_hash, signed_at, note) VALUES (?, ?, ?, ?)',
    ),
    span: database.prepare(insert('span', 'INSERT OR IGNORE')),
    removeSpans: database.prepare(
      `DELETE FROM span WHERE (trace_id, span_id) IN
        (SELECT trace_id, span_id FROM span WHERE end_micros < ? ORDER BY end_micros LIMIT ?)`,
    ),
  };
}
