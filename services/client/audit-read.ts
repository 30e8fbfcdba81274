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

export interface PathQuery {
  readonly jobId: string;
  /** Tenant sequence; -1 from the first event. */
  readonly after?: number;
  readonly treeSize?: number | undefined;
}

/** Where some of a job's records stand in the tree of a checkpoint. */
export interface PathPage {
  /** The signed note (C2SP tlog-checkpoint). */
  readonly checkpoint: string;
  readonly treeSize: number;
  /** For each record its ledger sequence, and the hashes from its leaf up to the root, in base64. */
  readonly leaves: readonly { readonly sequence: number; readonly inclusion: readonly string[] }[];
  readonly next: number;
  readonly more: boolean;
}

export interface CheckpointAnswer {
  /** The signed note. */
  readonly checkpoint: string;
  /** RFC 9162 consistency proof, in base64; null where none was asked for, or from nothing. */
  readonly consistency: readonly string[] | null;
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

  /** Paths of a job's leaves to one checkpoint: the newest, or the one of an earlier page. */
  async paths(query: PathQuery): Promise<PathPage> {
    return parseReply<PathPage>((await this.#ask({ what: 'proof', ...query }, 0)).data);
  }

  /** The newest checkpoint, with the proof that it goes on from a tree of `since` records. */
  async checkpoint(since?: number): Promise<CheckpointAnswer> {
    return parseReply<CheckpointAnswer>((await this.#ask({ what: 'checkpoint', since }, 0)).data);
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
