/**
 * The feed: publishes the records to AUDIT in ledger order. AUDIT itself says how far it got, in a header of its last
 * message, and each publish names the last sequence that it expects; so a crash at any point leaves no gap and no
 * double. The ledger is the record and never waits for the feed.
 */
import type { DatabaseSync } from 'node:sqlite';
import type { AuditRecord } from '../platform/codec.ts';
import { encode } from '../platform/codec.ts';
import { OperationalError, UsageError } from '../platform/errors.ts';
import { signedHeaders } from '../platform/events.ts';
import type { Logger } from '../platform/log.ts';
import type { Bus } from '../platform/nats/bus.ts';
import { eventId, headerNames, subjects } from '../platform/topology.ts';
import { inTransaction, reading } from './database.ts';
import type { FeedPosition } from './feed-store.ts';
import { FeedStore } from './feed-store.ts';
import type { RecordStore } from './record-store.ts';
import { reaching, Worker } from './worker.ts';

const stream = 'AUDIT';
/** Publishes on their way at one time. */
const windowRecords = 64;
const windowBytes = 4 * 1024 * 1024;
/** So long without a new record is a quiet moment. */
const quietMs = 1000;
/** How far back a record is looked for among the messages of others, such as checkpoints. */
const longestLookBack = 1024;
/** Room for subject and headers beside the record, and for what the server adds. */
const messageOverheadBytes = 8192;

export class Outbox {
  readonly worker: Worker;
  readonly #bus: Bus;
  readonly #records: RecordStore;
  readonly #database: DatabaseSync;
  readonly #saved: FeedStore;
  #position: FeedPosition | null = null;

  constructor(bus: Bus, records: RecordStore, database: DatabaseSync, log: Logger) {
    this.#bus = bus;
    this.#records = records;
    this.#database = database;
    this.#saved = new FeedStore(database);
    this.worker = new Worker('feed', () => this.#turn(), log);
  }

  /** Looks where AUDIT stands. Throws UsageError when it is ahead of the ledger: then nothing may be committed. */
  async locate(): Promise<void> {
    this.#position = await this.#whereAuditStands();
  }

  async #turn(): Promise<number | null> {
    let position = this.#position ?? (await this.#whereAuditStands());
    let published = false;
    for (
      let records = this.#nextRecords(position);
      records.length > 0;
      records = this.#nextRecords(position)
    ) {
      // Some may arrive although their confirmation does not: after a failure, only AUDIT knows.
      this.#position = null;
      position = await this.#publish(records, position);
      published = true;
    }
    this.#position = position;
    if (published) return quietMs;
    this.#save(position);
    return null;
  }

  /** Only in quiet moments: while records are published, AUDIT itself remembers. */
  #save(position: FeedPosition): void {
    const saved = reading(() => this.#saved.read());
    if (saved?.ledgerSequence === position.ledgerSequence && saved.streamSequence === position.streamSequence)
      return;
    inTransaction(this.#database, () => this.#saved.write(position));
  }

  #nextRecords(position: FeedPosition): AuditRecord[] {
    return reading(() => {
      const window: AuditRecord[] = [];
      let bytes = 0;
      for (const record of this.#records.from(position.ledgerSequence + 1)) {
        window.push(record);
        bytes += record.payload?.length ?? 0;
        if (window.length >= windowRecords || bytes >= windowBytes) break;
      }
      return window;
    });
  }

  /** Publishes the window at once: each names the sequence of the one before, so none can overtake another. */
  async #publish(records: readonly AuditRecord[], from: FeedPosition): Promise<FeedPosition> {
    const sent = await Promise.allSettled(
      records.map((record, index) => this.#publishOne(record, from.streamSequence + index)),
    );
    const failure: unknown = sent.find((result) => result.status === 'rejected')?.reason;
    if (failure instanceof OperationalError && failure.code === 'CONFLICT') return this.#whereAuditStands();
    if (failure !== undefined) throw failure;
    return {
      ledgerSequence: records.at(-1)?.sequence ?? from.ledgerSequence,
      streamSequence: from.streamSequence + records.length,
    };
  }

  async #publishOne(record: AuditRecord, expectedLastSequence: number): Promise<void> {
    const bytes = recordBytes(record, this.#bus.maxPayload - messageOverheadBytes);
    const subject = subjects.audit(record, record.kind);
    // Not a Nats-Msg-Id: after a crash the record must be published again at its place, not dropped as known.
    const id = eventId('audit', 'record', { stream: 'LEDGER', sequence: record.sequence }, record);
    await this.#bus.publish(subject, bytes, {
      headers: {
        ...signedHeaders(this.#bus, { subject, id, data: bytes }),
        [headerNames.ledgerSequence]: String(record.sequence),
        ...(record.traceparent === null ? {} : { [headerNames.traceparent]: record.traceparent }),
      },
      expectedLastSequence,
    });
  }

  async #whereAuditStands(): Promise<FeedPosition> {
    const { lastSequence } = await reaching(`stream ${stream}`, () => this.#bus.streamState(stream));
    const published = (await this.#lastPublished(lastSequence)) ?? this.#fromMemory(lastSequence);
    const size = reading(() => this.#records.size());
    if (published >= size)
      throw new UsageError(
        `${stream} has record ${published}, the ledger only ${size} records: an older ledger would fork history. ` +
          `Restore the newest ledger.db, or purge ${stream} to begin anew.`,
      );
    return { ledgerSequence: published, streamSequence: lastSequence };
  }

  /** Ledger sequence in the newest message that has one; null when there is none to read. */
  async #lastPublished(lastSequence: number): Promise<number | null> {
    for (let sequence = lastSequence; sequence > Math.max(0, lastSequence - longestLookBack); sequence--) {
      const message = await this.#bus.messageAt(stream, sequence);
      const header = message?.headers[headerNames.ledgerSequence] ?? '';
      if (/^\d{1,15}$/.test(header)) return Number(header);
      if (message === null && sequence < lastSequence) return null;
    }
    return null;
  }

  /** All messages have expired: go on where the feed stood. An empty AUDIT that never had any gets all records. */
  #fromMemory(lastSequence: number): number {
    const saved = reading(() => this.#saved.read());
    return saved === null || saved.streamSequence > lastSequence ? -1 : saved.ledgerSequence;
  }
}

/** The record as it is published and read; without its payload where a message cannot hold it. */
export function recordBytes(record: AuditRecord, maxBytes: number): Uint8Array {
  const whole = encode('AuditRecord', record);
  return whole.length <= maxBytes ? whole : encode('AuditRecord', { ...record, payload: null });
}
