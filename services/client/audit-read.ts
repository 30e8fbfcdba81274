/** Questions to the audit service, and their answers as values. */
import type { AnyEvent, AuditRecord, LogChunk } from '../platform/codec.ts';
import { decode, decodeAs } from '../platform/codec.ts';
import { messageOf } from '../platform/errors.ts';
import type { Bus } from '../platform/nats/bus.ts';
import { subjects } from '../platform/topology.ts';
import { parseReply, request } from './request.ts';

/** A record of the ledger with the event in it; null where it was erased, or cannot be decoded. */
export interface Entry {
  readonly record: AuditRecord;
  readonly event: AnyEvent | null;
  /** Why there is no event; null when there is one. */
  readonly fault: string | null;
}

export interface JobSummary {
  readonly jobId: string;
  readonly plugin: string | null;
  readonly state: string;
  readonly runtime: string | null;
  readonly outcome: string | null;
  readonly reason: string | null;
  readonly submittedAtMs: number;
  readonly updatedAtMs: number;
  readonly traceId: string | null;
}

export interface SpanRecord {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | null;
  readonly service: string;
  readonly name: string;
  readonly startMs: number;
  readonly endMs: number;
  readonly status: 'ok' | 'error' | 'unset';
  readonly attributes: Readonly<Record<string, unknown>>;
}

export interface Page<T> {
  readonly items: readonly T[];
  /** Ask after this one for the next page. */
  readonly next: number;
  readonly more: boolean;
}

export interface StoredChunk {
  /** Of the chunk in the stream LOGS. */
  readonly sequence: number;
  readonly chunk: LogChunk;
}

interface PageQuery {
  readonly after: number;
  readonly limit?: number;
  /** How long the service holds the question while there is nothing to answer. */
  readonly waitMs?: number;
}

export class AuditReader {
  readonly #bus: Bus;
  readonly #tenant: string;

  constructor(bus: Bus, tenant: string) {
    this.#bus = bus;
    this.#tenant = tenant;
  }

  async records(query: PageQuery & { readonly jobId?: string | undefined }): Promise<Page<Entry>> {
    const page = await this.#page({ what: 'records', ...query });
    return { ...page, items: page.items.map(({ bytes }) => decodeEntry(bytes)) };
  }

  async logs(query: PageQuery & { readonly jobId: string }): Promise<Page<StoredChunk>> {
    const page = await this.#page({ what: 'logs', ...query });
    const items = page.items.map(({ sequence, bytes }) => ({ sequence, chunk: decodeAs('LogChunk', bytes) }));
    return { ...page, items };
  }

  async jobs(query: { readonly limit?: number; readonly jobId?: string } = {}): Promise<JobSummary[]> {
    const reply = await this.#ask({ what: 'jobs', ...query }, 0);
    return parseReply<{ jobs: JobSummary[] }>(reply.data).jobs;
  }

  async spans(jobId: string): Promise<SpanRecord[]> {
    const reply = await this.#ask({ what: 'spans', jobId }, 0);
    return parseReply<{ spans: SpanRecord[] }>(reply.data).spans;
  }

  async #page(query: PageQuery & { readonly what: string }) {
    const reply = await this.#ask(query, query.waitMs ?? 0);
    return decodeAs('AuditPage', reply.data);
  }

  #ask(query: object, waitMs: number) {
    const body = Buffer.from(JSON.stringify(query));
    return request(this.#bus, subjects.auditRead(this.#tenant), body, { timeoutMs: waitMs + 10_000 });
  }
}

/** A record as it stands on the bus or in a page. */
export function decodeEntry(bytes: Uint8Array): Entry {
  const record = decodeAs('AuditRecord', bytes);
  if (record.payload === null) return { record, event: null, fault: 'it was erased' };
  try {
    return { record, event: decode(record.payload), fault: null };
  } catch (error) {
    // The ledger also keeps what nobody can decode; that is no reason to stop reading it.
    return { record, event: null, fault: messageOf(error) };
  }
}
