/**
 * The ledger: events in, each once, in one transaction with everything that follows from them (the job's row, the tree,
 * what may leave the bus). Knows no bus. Looks up, plans, commits, one batch after the other.
 */
import type { AuditRecord } from '../platform/codec.ts';
import type { StreamMessage } from '../platform/nats/bus.ts';
import type { Cause } from '../platform/topology.ts';
import { eventId, jobOfAnySubject, serviceNames } from '../platform/topology.ts';
import { checkHead } from './faults.ts';
import { placeKey } from './keys.ts';
import type { Described } from './plan.ts';
import { described, isSame, keysOf, plan, planRefill } from './plan.ts';
import { ofRecord } from './refill.ts';
import { releaseOf } from './release.ts';
import type { BatchKeys, Head, LedgerWriter } from './store.ts';
import type { CompactRange } from './tlog/compact-range.ts';
import { compactRangeAt } from './tlog/proofs.ts';

const nothing: BatchKeys = {
  places: [],
  causes: [],
  eventIds: [],
  jobs: new Map(),
  tenants: [],
  traceIds: [],
};

/** The tree as this process has written or read it, and its last leaf. */
interface Edge {
  readonly tree: CompactRange;
  readonly lastLeafHash: Uint8Array;
}

export class Ledger {
  readonly store: LedgerWriter;
  #edge: Edge;
  #appending: Promise<unknown> = Promise.resolve();

  private constructor(store: LedgerWriter, edge: Edge) {
    this.store = store;
    this.#edge = edge;
  }

  /** Throws MissingHashes when the tree cannot be made of what is stored. */
  static async open(store: LedgerWriter): Promise<Ledger> {
    const { size, lastLeafHash } = await store.head();
    return new Ledger(store, { tree: await compactRangeAt(store, size), lastLeafHash });
  }

  get size(): number {
    return this.#edge.tree.size;
  }

  /** Root over all records that are committed. */
  get root(): Uint8Array {
    return this.#edge.tree.root();
  }

  /** Commits the messages in this order; returns the records that are new. All are on disk when it resolves. */
  async append(messages: readonly StreamMessage[], nowMicros: number): Promise<AuditRecord[]> {
    return this.appendDescribed(messages.map(described), nowMicros);
  }

  appendDescribed(batch: readonly Described[], nowMicros: number): Promise<AuditRecord[]> {
    // One after the other: each batch is planned on the tree that the one before has left.
    const appended = this.#appending.then(() => this.#append(batch, nowMicros));
    this.#appending = appended.catch(() => undefined);
    return appended;
  }

  async #append(batch: readonly Described[], nowMicros: number): Promise<AuditRecord[]> {
    const known = await this.store.lookUp(keysOf(batch));
    this.#checkHead(known.head);
    const { changes, tree } = plan(batch, known, this.#edge.tree, nowMicros);
    await this.store.commit(changes);
    const records = changes.records.map(({ record }) => record);
    this.#edge = { tree, lastLeafHash: records.at(-1)?.leafHash ?? this.#edge.lastLeafHash };
    return records;
  }

  /** Commits records that AUDIT has and the store has lost. Throws RefillFault when they are not the next ones. */
  async refill(records: readonly AuditRecord[]): Promise<void> {
    const known = await this.store.lookUp(keysOf(records.map(ofRecord)));
    this.#checkHead(known.head);
    const { changes, tree } = planRefill(records, known, this.#edge.tree);
    await this.store.commit(changes);
    this.#edge = { tree, lastLeafHash: records.at(-1)?.leafHash ?? this.#edge.lastLeafHash };
  }

  /** A database that was set back, or failed over to an older state, is not the one that was written. */
  #checkHead(head: Head): void {
    checkHead(head, { size: this.size, lastLeafHash: this.#edge.lastLeafHash });
  }

  /** Of these places, the keys (see keys.ts) of those whose message is in the ledger. */
  async held(places: readonly Cause[]): Promise<ReadonlySet<string>> {
    return places.length === 0 ? new Set() : (await this.store.lookUp({ ...nothing, causes: places })).held;
  }

  /**
   * For a message that is still on the bus: notes again that it may leave, if it may. (A server that is killed forgets
   * deletions that it has confirmed.) Returns whether it may.
   */
  async releaseAgain(message: StreamMessage): Promise<boolean> {
    const one = described(message);
    const job = jobOfAnySubject(message.subject);
    const letters = serviceNames.map((service) => eventId(service, 'dead-lettered', message, job));
    const known = await this.store.lookUp({ ...keysOf([one]), eventIds: letters });
    const original = known.atPlace.get(one.place);
    if (original === undefined || !isSame(original, message)) return false;
    const row = one.job === null ? null : (known.jobs.get(one.job) ?? null);
    const deletions = releaseOf(one, row, (cause) => known.held.has(placeKey(cause)));
    const { stream, sequence } = message;
    if (known.byEventId.size > 0) deletions.push({ stream, sequence, awaits: null });
    if (deletions.length > 0) await this.store.noteDeletions(deletions);
    return this.store.isDeletable(message);
  }
}
