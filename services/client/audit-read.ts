/** Questions to the audit service, and their answers as values. */
import type { AnyEvent, AuditRecord, LogChunk } from '../platform/codec.ts';
import { decode, decodeAs } from '../platform/codec.ts';
import { messageOf } from '../platform/errors.ts';
import type { Bus } from '../platform/nats/bus.ts';
import { subjects } from '../platform/topology.ts';
import { parseReply, request } from './request.ts';
import type { OnWaiting } from './waiting.ts';
import { Waiting } from './waiting.ts';

/** A record of the ledger with the event in it; null where it was erased, or cannot be decoded. */
export interface Entry {
  readonly record: AuditRecord;
  readonly event: AnyEvent | null;
  /** Why there is no event; null when there is one. */
  readonly fault: string | null;
}

export interface JobSummary {
  readonly tenant: string;
  readonly jobId: string;
  readonly plugin: string | null;
  /** SHA-256 of the plugin in hex, and the keys that signed it; once it is verified. */
  readonly pluginSha256: string | null;
  readonly keyIds: readonly string[];
  readonly state: string;
  readonly runtime: string | null;
  readonly outcome: string | null;
  readonly reason: string | null;
  readonly submittedAtMs: number;
  readonly updatedAtMs: number;
  readonly traceId: string | null;
  /** Jobs are ordered by it: a page goes on before that of its last one. */
  readonly position: number;
}

/** By what jobs are found; all that is given must hold. */
export interface JobQuery {
  /** Submitted at or after, and before, milliseconds since 1970. */
  readonly since?: number;
  readonly until?: number;
  readonly state?: string;
  readonly outcome?: string;
  readonly runtime?: string;
  readonly keyId?: string;
  readonly plugin?: string;
  readonly pluginSha256?: string;
  readonly before?: number;
  readonly limit?: number;
}

/** A checkpoint of the ledger: the signed statement that its first `treeSize` records have this root. */
export interface CheckpointSummary {
  readonly treeSize: number;
  /** Hex. */
  readonly rootHash: string;
  /** Microseconds since 1970. */
  readonly at: number;
  /** The signed note (C2SP tlog-checkpoint). */
  readonly note: string;
}

/** Where a record stands. */
export interface Standing {
  /** Records in the ledger. */
  readonly size: number;
  /** The smallest checkpoint that covers the record; null until the next one is signed. */
  readonly covering: CheckpointSummary | null;
  readonly newest: CheckpointSummary | null;
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
  readonly statusMessage: string | null;
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

export interface JobsPage {
  readonly jobs: readonly JobSummary[];
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
  readonly #waiting: Waiting;

  constructor(bus: Bus, tenant: string, onWaiting?: OnWaiting) {
    this.#bus = bus;
    this.#tenant = tenant;
    this.#waiting = new Waiting(onWaiting);
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

  /** A page of jobs, newest first. */
  async jobs(query: JobQuery & { readonly jobId?: string } = {}): Promise<JobsPage> {
    const reply = await this.#ask({ what: 'jobs', ...query }, 0);
    return parseReply<JobsPage>(reply.data);
  }

  /** Where the record of this ledger sequence stands. */
  async standing(sequence: number): Promise<Standing> {
    return parseReply<Standing>((await this.#ask({ what: 'standing', sequence }, 0)).data);
  }

  /** The tenant sequence after which the records of this time begin. */
  async position(sinceMs: number): Promise<number> {
    return parseReply<{ after: number }>((await this.#ask({ what: 'position', sinceMs }, 0)).data).after;
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

  /** The proof that the tree of `newer` records goes on from the one of `older`: hashes in Base64. */
  async consistency(older: number, newer: number): Promise<readonly string[]> {
    const reply = await this.#ask({ what: 'consistency', older, newer }, 0);
    return parseReply<{ consistency: readonly string[] }>(reply.data).consistency;
  }

  async #page(query: PageQuery & { readonly what: string }) {
    const reply = await this.#ask(query, query.waitMs ?? 0);
    return decodeAs('AuditPage', reply.data);
  }

  #ask(query: object, waitMs: number) {
    const body = Buffer.from(JSON.stringify(query));
    const options = { timeoutMs: waitMs + 10_000 };
    const ask = () => request(this.#bus, subjects.auditRead(this.#tenant), body, options);
    return this.#waiting.during(ask, waitMs);
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
