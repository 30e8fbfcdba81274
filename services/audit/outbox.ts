/**
 * Publishes the records to AUDIT in ledger order, and each checkpoint after what it covers. AUDIT itself says how far it
 * got, so a crash at any point leaves no gap and no double. The ledger is the record and never waits for the feed.
 */
import type { LedgerWriter, StoredCheckpoint } from '../ledger/store.ts';
import { sameHash } from '../ledger/tlog/merkle.ts';
import type { AuditRecord } from '../platform/codec.ts';
import { OperationalError, UsageError } from '../platform/errors.ts';
import type { Logger } from '../platform/log.ts';
import type { Feed, PublishedRecord } from './feed.ts';
import { Worker } from './worker.ts';

/** Publishes on their way at one time. */
const window = { records: 128, bytes: 4 * 1024 * 1024 };
/** So long without a new record is a quiet moment. */
const quietMs = 1000;

/** What AUDIT has. */
interface Position {
  /** Sequence of the last published record; -1 before the first. */
  readonly ledgerSequence: number;
  /** Size of the last published checkpoint; 0 before the first. */
  readonly checkpointSize: number;
  readonly streamSequence: number;
}

export interface OutboxParts {
  readonly feed: Feed;
  readonly store: LedgerWriter;
  /** Name of the log, which checkpoints carry. */
  readonly origin: string;
  readonly log: Logger;
  /** Resolves when there is time for this. */
  readonly turn: () => Promise<void>;
}

export class Outbox {
  readonly worker: Worker;
  readonly #parts: OutboxParts;
  #position: Position | null = null;

  constructor(parts: OutboxParts) {
    this.#parts = parts;
    this.worker = new Worker('feed', () => this.#turn(), parts.log);
  }

  async #turn(): Promise<number | null> {
    let published = false;
    for (;;) {
      await this.#parts.turn();
      const position = this.#position ?? (await this.#whereAuditStands());
      this.#position = position;
      const next = await this.#publishNext(position);
      if (next === null) break;
      this.#position = next;
      published = true;
    }
    if (published) return quietMs;
    if (this.#position !== null) await this.#save(this.#position);
    return null;
  }

  /** Only in quiet moments: while records are published, AUDIT itself remembers. */
  async #save({ ledgerSequence, streamSequence }: Position): Promise<void> {
    const saved = await this.#parts.store.feedPosition();
    if (saved?.ledgerSequence === ledgerSequence && saved.streamSequence === streamSequence) return;
    await this.#parts.store.saveFeedPosition({ ledgerSequence, streamSequence });
  }

  /** Where AUDIT stands after the next messages; null when there are none. */
  async #publishNext(position: Position): Promise<Position | null> {
    const { store } = this.#parts;
    const checkpoint = await store.newestCheckpoint();
    const isDue =
      checkpoint !== null &&
      checkpoint.treeSize > position.checkpointSize &&
      checkpoint.treeSize <= position.ledgerSequence + 1;
    if (isDue) return this.#guarded(() => this.#publishCheckpoint(checkpoint, position));
    const records = await store.records(position.ledgerSequence + 1, window);
    return records.length === 0 ? null : this.#guarded(() => this.#publishRecords(records, position));
  }

  async #guarded(publish: () => Promise<Position>): Promise<Position> {
    // Some may arrive although their confirmation does not: after a failure, only AUDIT knows.
    this.#position = null;
    try {
      return await publish();
    } catch (error) {
      if (error instanceof OperationalError && error.code === 'CONFLICT') return this.#whereAuditStands();
      throw error;
    }
  }

  async #publishCheckpoint(checkpoint: StoredCheckpoint, position: Position): Promise<Position> {
    const { feed, origin } = this.#parts;
    const { streamSequence } = position;
    await feed.publish([await feed.checkpoint({ origin, ...checkpoint })], streamSequence);
    return { ...position, checkpointSize: checkpoint.treeSize, streamSequence: streamSequence + 1 };
  }

  async #publishRecords(records: readonly AuditRecord[], from: Position): Promise<Position> {
    const { feed } = this.#parts;
    await feed.publish(await feed.records(records), from.streamSequence);
    return {
      ...from,
      ledgerSequence: records.at(-1)?.sequence ?? from.ledgerSequence,
      streamSequence: from.streamSequence + records.length,
    };
  }

  /** Throws UsageError when AUDIT is ahead of the ledger: a start would have refilled the ledger, or refused. */
  async #whereAuditStands(): Promise<Position> {
    const { feed, store } = this.#parts;
    const { lastSequence } = await feed.state();
    const newest = await feed.newestRecord();
    const ledgerSequence = newest?.sequence ?? (await this.#fromMemory(lastSequence));
    const checkpoint = await feed.newestCheckpoint();
    const { size } = await store.head();
    if (ledgerSequence >= size) throw aheadOfLedger(ledgerSequence, size);
    if (newest !== null) await this.#compare(newest);
    return {
      ledgerSequence,
      checkpointSize: checkpoint?.treeSize ?? 0,
      streamSequence: lastSequence,
    };
  }

  /** AUDIT may have been out of reach when this service started on an older ledger, and gone on. */
  async #compare({ sequence, leafHash }: PublishedRecord): Promise<void> {
    const [own] = await this.#parts.store.recordsAt([sequence]);
    if (leafHash === null || own === undefined || sameHash(own.leafHash, leafHash)) return;
    throw new UsageError(
      `record ${sequence} of AUDIT is not the one of the ledger: history has been forked by an older ledger. ` +
        'Restore the newest ledger, or purge AUDIT to begin anew.',
    );
  }

  /** All messages have expired: go on where the feed stood. An empty AUDIT that never had any gets all records. */
  async #fromMemory(lastSequence: number): Promise<number> {
    const saved = await this.#parts.store.feedPosition();
    return saved === null || saved.streamSequence > lastSequence ? -1 : saved.ledgerSequence;
  }
}

export const aheadOfLedger = (published: number, size: number, why = ''): UsageError =>
  new UsageError(
    `AUDIT has record ${published}, the ledger only ${size} records: an older ledger would fork history. ` +
      `${why}Restore the newest ledger, or purge AUDIT to begin anew.`,
  );
