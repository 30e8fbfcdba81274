/**
 * The ledger's store, as everybody sees it: types alone. Two stores keep it, SQLite and PostgreSQL, behind the same
 * two interfaces: any number of readers, in any process, and one writer at a time.
 *
 * All methods throw OperationalError LEDGER_UNAVAILABLE for what can pass (a full disk, a database that is away), and a
 * writer LostLedgerError when another one has taken over. Lists are pages: a caller asks for the next one after what it
 * has; an empty page is the end. Records are only ever added, so that pages agree with each other (but for erasure).
 */
import type { AuditRecord } from '../platform/codec.ts';
import type { Cause, JobRef } from '../platform/topology.ts';
import type { StoredLevel } from './tlog/compact-range.ts';
import type { HashSource } from './tlog/proofs.ts';

// --- What is stored

export type { AuditRecord } from '../platform/codec.ts';
export type { StoredLevel } from './tlog/compact-range.ts';
export type { HashSource } from './tlog/proofs.ts';

export type JobState =
  | 'submitted'
  | 'verified'
  | 'routed'
  | 'started'
  | 'finished'
  | 'rejected'
  | 'cancelled';

/** What the records say about a job, kept in the same transaction. */
export interface JobRow {
  readonly tenant: string;
  readonly jobId: string;
  /** Ledger sequence of its first record: jobs are ordered by it, and no two have the same. */
  readonly firstSequence: number;
  readonly lastLeafHash: Uint8Array;
  /** Ledger sequence of the terminal event. */
  readonly terminalSequence: number | null;
  /** Null while no valid submission is known. */
  readonly state: JobState | null;
  /** File name, as signed. */
  readonly plugin: string | null;
  /** SHA-256 of the plugin in hex, once it is verified. */
  readonly pluginSha256: string | null;
  /** Keys whose signatures were accepted; empty until it is verified. */
  readonly keyIds: readonly string[];
  readonly runtime: string | null;
  readonly outcome: string | null;
  readonly reason: string | null;
  readonly submittedAtMs: number | null;
  readonly updatedAtMs: number;
  readonly traceId: string | null;
}

/** Where the tree stands: its size and its last leaf. */
export interface Head {
  /** Number of records; also the next sequence. */
  readonly size: number;
  /** Leaf hash of the last record; empty in an empty ledger. */
  readonly lastLeafHash: Uint8Array;
  /** When the last record was made, microseconds; 0 in an empty ledger. */
  readonly recordedAt: number;
}

/** A signed statement of the tree: "of the first `treeSize` records, `rootHash` is the root". */
export interface StoredCheckpoint {
  readonly treeSize: number;
  readonly rootHash: Uint8Array;
  /** When it was signed, microseconds. */
  readonly at: number;
  /** The signed note, UTF-8 (C2SP tlog-checkpoint). */
  readonly note: Uint8Array;
}

export type AttributeValue = string | number | boolean | null | readonly AttributeValue[];
export type Attributes = Readonly<Record<string, AttributeValue>>;

export interface StoredSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | null;
  readonly service: string;
  readonly name: string;
  /** OTLP SpanKind: 1 internal, 2 server, 3 client, 4 producer, 5 consumer. */
  readonly kind: number;
  readonly startMicros: number;
  readonly endMicros: number;
  readonly status: 'ok' | 'error' | 'unset';
  readonly statusMessage: string | null;
  readonly attributes: Attributes;
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[];
}

/** Where the feed stood at a quiet moment: the record last published, and its place in AUDIT. */
export interface FeedPosition {
  /** Sequence of the last published record; -1 before the first. */
  readonly ledgerSequence: number;
  /** Last sequence of AUDIT then. */
  readonly streamSequence: number;
}

// --- Reading

/** At most so many, ending with the one that brings the payloads to `bytes`; never none where there is one. */
export interface PageLimit {
  readonly records: number;
  readonly bytes: number;
}

/** What is given must hold, all of it. */
export interface JobFilter {
  readonly tenant?: string;
  /** Submitted at or after, and before, milliseconds. */
  readonly since?: number;
  readonly until?: number;
  readonly state?: JobState;
  readonly outcome?: string;
  readonly runtime?: string;
  readonly keyId?: string;
  readonly plugin?: string;
  readonly pluginSha256?: string;
}

export interface JobPage {
  /** Only jobs whose first record is older: `firstSequence` of the last one of the page before. */
  readonly before?: number;
  readonly limit: number;
}

/** `hashes` gives those that there are: fewer than were asked for where the database is damaged, or smaller. */
export interface LedgerReader extends HashSource {
  head(): Promise<Head>;

  /** In order, from a ledger sequence on. */
  records(from: number, limit: PageLimit): Promise<AuditRecord[]>;
  /** Those of these ledger sequences that there are, in order. At most 256 at one time. */
  recordsAt(sequences: readonly number[]): Promise<AuditRecord[]>;
  /** In order, after a tenant sequence; -1 for all. */
  recordsOfTenant(tenant: string, afterTenantSequence: number, limit: PageLimit): Promise<AuditRecord[]>;
  recordsOfJob(job: JobRef, afterTenantSequence: number, limit: PageLimit): Promise<AuditRecord[]>;
  /**
   * For verification: stored rows of `subtree`, in order of their numbers, whatever the numbers are. Unlike `hashes` it
   * does not mind gaps.
   */
  subtrees(level: StoredLevel, from: number, limit: number): Promise<Subtree[]>;

  job(job: JobRef): Promise<JobRow | null>;
  /** Newest first; only jobs that were submitted. */
  jobs(filter: JobFilter, page: JobPage): Promise<JobRow[]>;

  /** By start. */
  spansOfTrace(traceId: string, limit: number): Promise<StoredSpan[]>;

  newestCheckpoint(): Promise<StoredCheckpoint | null>;
  /** In order of size: those that cover at least `fromSize` records. The first one is the smallest that does. */
  checkpoints(fromSize: number, limit: number): Promise<StoredCheckpoint[]>;

  close(): Promise<void>;
}

/** Root of a complete subtree of 2^level leaves, the `number`th of its level from the left, from 0. */
export interface Subtree {
  readonly level: StoredLevel;
  readonly number: number;
  readonly hash: Uint8Array;
}

// --- Writing

/** Everything about which a batch of messages asks the store. */
export interface BatchKeys {
  /** Places of the messages: what was recorded there comes with its bytes. */
  readonly places: readonly Cause[];
  /** Places of which only matters whether something was recorded there. */
  readonly causes: readonly Cause[];
  readonly eventIds: readonly string[];
  /** By their keys. */
  readonly jobs: ReadonlyMap<string, JobRef>;
  readonly tenants: readonly string[];
  readonly traceIds: readonly string[];
}

/** What tells a redelivery from another message in the same place, or under the same id. */
export interface Original {
  readonly sequence: number;
  readonly subject: string;
  /** Null once it is erased. */
  readonly payload: Uint8Array | null;
}

/** What the store knows about a batch. Keys of the maps: see keys.ts. */
export interface Known {
  readonly head: Head;
  /** How often each stream was made anew; 0 for one that is not there. Places are those of the current epoch. */
  readonly epochs: ReadonlyMap<string, number>;
  readonly atPlace: ReadonlyMap<string, Original>;
  /** Of places and causes: those where something was recorded, repetitions included. */
  readonly held: ReadonlySet<string>;
  readonly byEventId: ReadonlyMap<string, Original>;
  readonly jobs: ReadonlyMap<string, JobRow>;
  readonly nextTenantSequence: ReadonlyMap<string, number>;
  /** Tenants whose jobs use a trace id. */
  readonly traceTenants: ReadonlyMap<string, ReadonlySet<string>>;
}

export interface NewRecord {
  readonly record: AuditRecord;
  readonly epoch: number;
}

/** A message that carried an event again under the same id. */
export interface Duplicate extends Cause {
  readonly epoch: number;
  /** Ledger sequence of the event. */
  readonly of: number;
  /** Only where its bytes differ. */
  readonly payload: Uint8Array | null;
}

export interface Deletion extends Cause {
  /** The consumer that must have acked the message first. */
  readonly awaits: string | null;
}

/** All that a batch changes: applied in one transaction, or not at all. */
export interface Changes {
  /** The tree on which this was planned. */
  readonly onto: Pick<Head, 'size' | 'lastLeafHash'>;
  readonly records: readonly NewRecord[];
  readonly subtrees: readonly Subtree[];
  readonly duplicates: readonly Duplicate[];
  /** Streams that were made anew, with their new epoch: what was noted for deletion there is forgotten. */
  readonly epochs: ReadonlyMap<string, number>;
  /** Each job that changed, once, as it is now. */
  readonly jobs: readonly JobRow[];
  /** Messages that may leave the bus; a second word can only lift a wait. */
  readonly deletions: readonly Deletion[];
  /** Jobs that have ended now: every message of theirs may leave the bus. */
  readonly endedJobs: readonly JobRef[];
}

/** The one who may write. Every write checks that it still is. */
export interface LedgerWriter extends LedgerReader {
  /** Rejects with LostLedgerError as soon as this one knows that it is the writer no longer; never resolves. */
  readonly lost: Promise<never>;

  lookUp(keys: BatchKeys): Promise<Known>;
  /** Returns when everything is on disk. Throws LostLedgerError when the tree is not the one of `onto`. */
  commit(changes: Changes): Promise<void>;

  /** Messages that may leave the bus now. */
  readyDeletions(limit: number): Promise<Cause[]>;
  isDeletable(message: Cause): Promise<boolean>;
  noteDeletions(deletions: readonly Deletion[]): Promise<void>;
  deletionsDone(messages: readonly Cause[]): Promise<void>;
  /** Consumers that some deletions wait for. */
  awaitedConsumers(): Promise<string[]>;
  /** Lifts the wait of those that `durable` has passed. */
  liftWaits(durable: string, floor: number): Promise<void>;

  feedPosition(): Promise<FeedPosition | null>;
  saveFeedPosition(position: FeedPosition): Promise<void>;

  addCheckpoint(checkpoint: StoredCheckpoint): Promise<void>;
  /** Those that are there already stay as they are. */
  addSpans(spans: readonly StoredSpan[]): Promise<void>;

  /**
   * Erases payloads and their salts, of records and of what repeated them; hashes stay, so that every proof stays valid.
   * Returns how many records had one.
   */
  eraseJob(job: JobRef): Promise<number>;
  /** The same for at most `limit` records of ended jobs that were made before (microseconds), oldest first. */
  erasePayloads(recordedBefore: number, limit: number): Promise<number>;
  /** Removes at most `limit` spans that ended before (microseconds). Returns how many. */
  removeSpans(endedBefore: number, limit: number): Promise<number>;
}

/** Opens for reading, beside whoever writes: a file of SQLite, or postgres://… Throws UsageError. */
export type OpenReader = (location: string) => Promise<LedgerReader>;
/** Becomes the writer, or returns null while another one is. Makes or migrates the tables. Throws UsageError. */
export type ClaimWriter = (location: string) => Promise<LedgerWriter | null>;
