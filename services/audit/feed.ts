/**
 * The stream AUDIT: records in ledger order, and checkpoints among them, each after all that it covers. Each publish
 * names the last sequence that it expects, so nothing is there twice or in another order.
 */
import type { AuditCheckpoint, AuditRecord } from '../platform/codec.ts';
import { decodeAs, encode } from '../platform/codec.ts';
import { signedHeaders } from '../platform/events.ts';
import type { Bus, Headers, StreamMessage } from '../platform/nats/bus.ts';
import { eventId, headerNames, noToken, subjects } from '../platform/topology.ts';
import { reaching } from './worker.ts';

const stream = 'AUDIT';
/** Any record, and nothing else. */
const recordsFilter = 'audit.>';
/** Room for subject and headers beside the record, and for what the server adds. */
const messageOverheadBytes = 8192;

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

  async publishRecord(record: AuditRecord, expectedLastSequence: number): Promise<void> {
    const data = recordBytes(record, this.#bus.maxPayload - messageOverheadBytes);
    const id = eventId('audit', 'record', { stream: 'LEDGER', sequence: record.sequence }, record);
    const headers = {
      [headerNames.ledgerSequence]: String(record.sequence),
      ...(record.traceparent === null ? {} : { [headerNames.traceparent]: record.traceparent }),
    };
    await this.#publish(
      { subject: subjects.audit(record, record.kind), id, data },
      headers,
      expectedLastSequence,
    );
  }

  async publishCheckpoint(checkpoint: AuditCheckpoint, expectedLastSequence: number): Promise<void> {
    const nobody = { tenant: noToken, jobId: noToken };
    const id = eventId('audit', 'checkpoint', { stream: 'LEDGER', sequence: checkpoint.treeSize }, nobody);
    const data = encode('AuditCheckpoint', checkpoint);
    await this.#publish({ subject: subjects.auditCheckpoint, id, data }, {}, expectedLastSequence);
  }

  /** Not under a Nats-Msg-Id: after a crash a message must be published again at its place, not dropped as known. */
  async #publish(
    message: { readonly subject: string; readonly id: string; readonly data: Uint8Array },
    headers: Headers,
    expectedLastSequence: number,
  ): Promise<void> {
    const { subject, data } = message;
    const all = { ...(await signedHeaders(this.#bus, message)), ...headers };
    await this.#bus.publish(subject, data, { headers: all, expectedLastSequence });
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
