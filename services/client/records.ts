/**
 * Records of the ledger as one sequence without gap or double: live ones as they are published, all others by reading
 * the ledger. A live record is used only if it is certainly the next one; in any doubt the ledger is read.
 */
import type { Bus } from '../platform/nats/bus.ts';
import { subjects } from '../platform/topology.ts';
import type { AuditReader, Entry } from './audit-read.ts';
import { decodeEntry } from './audit-read.ts';
import { patiently } from './request.ts';

export interface RecordsOptions {
  /** Only those of this job. */
  readonly jobId?: string | undefined;
  /** Only those after this sequence of the tenant (-1, the default, is from the beginning), or those from now on. */
  readonly after?: number | 'now' | undefined;
  /** Ends the sequence. */
  readonly signal?: AbortSignal | undefined;
  /** Goes on with those still to come; true unless set. Without it the sequence ends where the ledger ends. */
  readonly follow?: boolean | undefined;
}

/** Where a reader of records stands. */
export interface Position {
  /** Of the last record given. */
  readonly tenantSequence: number;
  /** Of the last record given of the job; null before the first. */
  readonly leafHash: Uint8Array | null;
}

/** Whether `entry` is certainly the next one after `position`: by number, or, for one job, by its chain of hashes. */
export function isNext(position: Position, { record }: Entry, jobId: string | undefined): boolean {
  if (record.tenantSequence === position.tenantSequence + 1) return true;
  if (jobId === undefined || position.leafHash === null || position.leafHash.length === 0) return false;
  return Buffer.compare(record.previousLeafHash, position.leafHash) === 0;
}

/** More waiting live records than this are dropped, and read from the ledger instead. */
const mostWaiting = 1000;
/** A live record can be lost, e.g. while the connection is down: after so much silence the ledger is asked. */
const silenceMs = 3000;
/** The most that audit-read gives; large ones fill a page sooner. */
const recordsPerPage = 1000;
/** For so long the ledger may give no answer before this is an error. */
const patienceMs = 60_000;

export async function* readRecords(
  bus: Bus,
  reader: AuditReader,
  tenant: string,
  options: RecordsOptions,
): AsyncGenerator<Entry, void> {
  const { jobId, signal, follow = true } = options;
  const live = follow ? new LiveEntries(bus, subjects.auditOf(tenant, jobId), signal) : null;
  let position = startOf(options.after ?? -1);
  let inDoubt = true;
  try {
    while (signal?.aborted !== true) {
      if (inDoubt && position !== null)
        for await (const entry of readLedger(reader, position.tenantSequence, jobId, signal)) {
          position = positionAfter(entry);
          yield entry;
        }
      if (live === null) return;
      await live.wait(silenceMs);
      const waiting = live.take();
      inDoubt = waiting.length === 0;
      for (const entry of waiting) {
        if (isBehind(position, entry)) continue;
        inDoubt = position !== null && !isNext(position, entry, jobId);
        if (inDoubt) break;
        position = positionAfter(entry);
        yield entry;
      }
    }
  } finally {
    live?.stop();
  }
}

/** Null is from now on: whatever comes first is the first. */
function startOf(after: number | 'now'): Position | null {
  return after === 'now' ? null : { tenantSequence: after, leafHash: null };
}

function isBehind(position: Position | null, { record }: Entry): boolean {
  return position !== null && record.tenantSequence <= position.tenantSequence;
}

function positionAfter({ record }: Entry): Position {
  return { tenantSequence: record.tenantSequence, leafHash: record.leafHash };
}

async function* readLedger(
  reader: AuditReader,
  after: number,
  jobId: string | undefined,
  signal: AbortSignal | undefined,
): AsyncGenerator<Entry, void> {
  for (let next = after, more = true; more && signal?.aborted !== true; ) {
    const page = await patiently(
      () => reader.records({ after: next, jobId, limit: recordsPerPage }),
      patienceMs,
      signal,
    );
    if (page === null) return;
    yield* page.items;
    ({ next, more } = page);
  }
}

/** What the subscription has brought and nobody has taken yet. */
class LiveEntries {
  readonly #unsubscribe: () => void;
  readonly #signal: AbortSignal | undefined;
  readonly #onAbort = () => this.#wake();
  #waiting: Entry[] = [];
  #wake: () => void = () => undefined;

  constructor(bus: Bus, subject: string, signal: AbortSignal | undefined) {
    this.#unsubscribe = bus.listen(subject, (message) => this.#add(message.data));
    this.#signal = signal;
    signal?.addEventListener('abort', this.#onAbort);
  }

  #add(data: Uint8Array): void {
    if (this.#waiting.length >= mostWaiting) this.#waiting = [];
    try {
      this.#waiting.push(decodeEntry(data));
    } catch {
      // A record of a newer version: the ledger will be asked, and what it answers decides.
    }
    this.#wake();
  }

  take(): Entry[] {
    return this.#waiting.splice(0);
  }

  /** Resolves when there is something to take, when the signal aborts, or after `mostMs`. */
  async wait(mostMs: number): Promise<void> {
    if (this.#waiting.length > 0 || this.#signal?.aborted === true) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    const timer = setTimeout(resolve, mostMs);
    await promise;
    clearTimeout(timer);
  }

  stop(): void {
    this.#unsubscribe();
    this.#signal?.removeEventListener('abort', this.#onAbort);
  }
}
