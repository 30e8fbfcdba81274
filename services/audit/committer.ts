/** From deliveries to the ledger: causes first, one transaction for all that is queued, then the handlers return. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Ledger } from '../ledger/ledger.ts';
import { described } from '../ledger/plan.ts';
import type { Clock } from '../platform/clock.ts';
import { toMicros } from '../platform/clock.ts';
import type { AuditRecord } from '../platform/codec.ts';
import type { Bus, StreamMessage } from '../platform/nats/bus.ts';
import { fetchCause } from './authenticity.ts';
import { causesFirst } from './causes.ts';
import type { Committed } from './commit-spans.ts';
import type { Pending } from './group-commit.ts';
import { GroupCommit } from './group-commit.ts';

/** So long without a commit is a quiet moment. However many events come, work beside the commits goes on after a while. */
const quietMs = 5;
const longestWaitMs = 100;
/** A commit of so many events says that there is a backlog, and more to come at once: then the wait may be longer. */
const backlogEvents = 128;
const longestBacklogWaitMs = 1000;

export interface CommitterParts {
  readonly bus: Pick<Bus, 'messageAt' | 'identity'>;
  readonly ledger: Ledger;
  readonly clock: Clock;
  /** Told after each commit. */
  readonly onCommitted: (committed: readonly Committed[]) => void;
}

/** A message in the order in which it came, and whether it is an event at all, which is found out meanwhile. */
class Arrival {
  readonly message: StreamMessage;
  /** Resolves when it is known. */
  readonly known: Promise<void>;
  verdict: 'open' | 'event' | 'none' = 'open';
  /** Why it is none. */
  failure: unknown;

  constructor(message: StreamMessage, checked: Promise<void>) {
    this.message = message;
    this.known = checked.then(
      () => {
        this.verdict = 'event';
      },
      (error: unknown) => {
        this.verdict = 'none';
        this.failure = error;
      },
    );
  }
}

export class Committer {
  readonly #parts: CommitterParts;
  readonly #group = new GroupCommit<Arrival>((batch) => this.#commit(batch));

  /** When there was a backlog last. */
  #backlogAtMs = Number.NEGATIVE_INFINITY;

  constructor(parts: CommitterParts) {
    this.#parts = parts;
  }

  /**
   * Resolves when the message is in the ledger, on disk. Rejects with what `checked` rejects with: then it is not
   * recorded. Messages are recorded in the order of the calls, however long their checks take.
   */
  record(message: StreamMessage, checked: Promise<void>): Promise<void> {
    return this.#group.submit(new Arrival(message, checked), this.#parts.clock.nowMs());
  }

  /** For work that should let commits go first: resolves in a quiet moment, or after a while. */
  async letCommitsGoFirst(): Promise<void> {
    const startedAtMs = performance.now();
    while (performance.now() - startedAtMs < this.#patienceMs) await delay(quietMs);
  }

  get #patienceMs(): number {
    if (performance.now() - this.#backlogAtMs < longestWaitMs) return longestBacklogWaitMs;
    return this.#group.quietMs < quietMs ? longestWaitMs : 0;
  }

  async #commit(arrived: readonly Pending<Arrival>[]): Promise<void> {
    const { bus, ledger, clock, onCommitted } = this.#parts;
    const batch = await accepted(arrived);
    if (batch.length === 0) return;
    const { messages, failed } = await causesFirst(
      batch.map(({ item }) => described(item.message)),
      {
        committed: (places) => ledger.held(places),
        fetch: (cause, effect) => fetchCause(bus, cause, effect),
      },
    );
    const records = await ledger.appendDescribed(messages, toMicros(clock.nowMs()));
    if (batch.length >= backlogEvents) this.#backlogAtMs = performance.now();
    onCommitted(committedOf(batch, records));
    for (const pending of batch) {
      const failure = failed.get(pending.item.message);
      if (failure === undefined) pending.resolve();
      else pending.reject(failure);
    }
  }
}

/** Those that are events; the others get their failure. */
async function accepted(arrived: readonly Pending<Arrival>[]): Promise<readonly Pending<Arrival>[]> {
  for (const { item } of arrived) if (item.verdict === 'open') await item.known;
  return arrived.filter(({ item, reject }) => {
    if (item.verdict === 'event') return true;
    reject(item.failure);
    return false;
  });
}

function committedOf(batch: readonly Pending<Arrival>[], records: readonly AuditRecord[]): Committed[] {
  // A record has the very bytes of its message, and no two messages share theirs.
  const arrivals = new Map(batch.map(({ item, receivedAtMs }) => [item.message.data, receivedAtMs] as const));
  return records.map((record) => ({
    record,
    arrivedAtMs: (record.payload === null ? undefined : arrivals.get(record.payload)) ?? null,
  }));
}
