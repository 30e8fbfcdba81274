/**
 * The stream AUDIT: records in ledger order, and checkpoints among them, each after all that it covers. Each publish
 * names the last sequence that it expects, so nothing is there twice or in another order.
 */
import type { AuditCheckpoint, AuditRecord } from '../platform/codec.ts';
import { decodeAs, encode } from '../platform/codec.ts';
import type { Signable } from '../platform/event-keys.ts';
import { signedHeaders } from '../platform/events.ts';
import type { Bus, Headers, StreamMessage } from '../platform/nats/bus.ts';
import { eventId, headerNames, noToken, subjects } from '../platform/topology.ts';
import { reaching } from './worker.ts';

const stream = 'AUDIT';
/** Any record, and nothing else. */
const recordsFilter = 'audit.>';
/** Room for subject and headers beside the record, and for what the server adds. */
const messageOverheadBytes = 8192;

/** Ready to be published. */
export interface FeedMessage {
  readonly subject: string;
  readonly data: Uint8Array;
  readonly headers: Headers;
}

export interface FeedState {
  readonly firstSequence: number;
  readonly lastSequence: number;
}

/** What the newest record says of itself. */
export interface PublishedRecord {
  readonly sequence: number;
  /** Null when it is not by audit. */
  readonly leafHash: Uint8Array | null;
}

export class Feed {
  readonly #bus: Bus;

  constructor(bus: Bus) {
    this.#bus = bus;
  }

  state(): Promise<FeedState> {
    return reaching(`stream ${stream}`, () => this.#bus.streamState(stream));
  }

  /** The records as messages, in this order. Signing is done aside, and so before anything is published. */
  records(records: readonly AuditRecord[]): Promise<FeedMessage[]> {
    return Promise.all(records.map((record) => this.#record(record)));
  }

  #record(record: AuditRecord): Promise<FeedMessage> {
    const data = recordBytes(record, this.#bus.maxPayload - messageOverheadBytes);
    const id = eventId('audit', 'record', { stream: 'LEDGER', sequence: record.sequence }, record);
    return this.#signed(
      { subject: subjects.audit(record, record.kind), id, data },
      {
        [headerNames.ledgerSequence]: String(record.sequence),
        ...(record.traceparent === null ? {} : { [headerNames.traceparent]: record.traceparent }),
      },
    );
  }

  checkpoint(checkpoint: AuditCheckpoint): Promise<FeedMessage> {
    const nobody = { tenant: noToken, jobId: noToken };
    const id = eventId('audit', 'checkpoint', { stream: 'LEDGER', sequence: checkpoint.treeSize }, nobody);
    const data = encode('AuditCheckpoint', checkpoint);
    return this.#signed({ subject: subjects.auditCheckpoint, id, data }, {});
  }

  async #signed(event: Signable, headers: Headers): Promise<FeedMessage> {
    const { subject, data } = event;
    return { subject, data, headers: { ...(await signedHeaders(this.#bus, event)), ...headers } };
  }

  /**
   * Publishes the messages at once: each names the sequence of the one before, so none can overtake another. Not under a
   * Nats-Msg-Id: after a crash a message must be published again at its place, not dropped as known.
   */
  async publish(messages: readonly FeedMessage[], lastSequence: number): Promise<void> {
    const sent = await Promise.allSettled(
      messages.map(({ subject, data, headers }, index) =>
        this.#bus.publish(subject, data, { headers, expectedLastSequence: lastSequence + index }),
      ),
    );
    const failure: unknown = sent.find((result) => result.status === 'rejected')?.reason;
    if (failure !== undefined) throw failure;
  }

  /** The newest record that is there; null where none is. */
  async newestRecord(): Promise<PublishedRecord | null> {
    const message = await this.#bus.lastMessage(stream, recordsFilter);
    const sequence = message === null ? null : ledgerSequenceOf(message);
    if (message === null || sequence === null) return null;
    return { sequence, leafHash: this.recordIn(message)?.leafHash ?? null };
  }

  /** The newest checkpoint that audit itself has published; null where none is there. */
  async newestCheckpoint(): Promise<AuditCheckpoint | null> {
    const message = await this.#bus.lastMessage(stream, subjects.auditCheckpoint);
    if (message === null || !this.#isOurs(message)) return null;
    return decodeAs('AuditCheckpoint', message.data);
  }

  /** The first record at or after a stream sequence. */
  nextRecord(sequence: number): Promise<StreamMessage | null> {
    return this.#bus.nextMessage(stream, sequence, recordsFilter);
  }

  /** The record in a message that audit itself has published; null in any other. */
  recordIn(message: StreamMessage): AuditRecord | null {
    return this.#isOurs(message) ? decodeAs('AuditRecord', message.data) : null;
  }

  #isOurs(message: StreamMessage): boolean {
    const verdict = this.#bus.identity?.check(message);
    return verdict?.ok === true && verdict.signer === 'audit';
  }
}

/** What the header of a record says; null where it says nothing. */
export function ledgerSequenceOf(message: StreamMessage): number | null {
  const header = message.headers[headerNames.ledgerSequence] ?? '';
  return /^\d{1,15}$/.test(header) ? Number(header) : null;
}

/** The record as it is published and read; without its payload where a message cannot hold it. */
export function recordBytes(record: AuditRecord, maxBytes: number): Uint8Array {
  const whole = encode('AuditRecord', record);
  return whole.length <= maxBytes ? whole : encode('AuditRecord', { ...record, payload: null });
}
