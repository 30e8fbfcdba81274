/** Order respects cause: an event is committed after the event that caused it, whichever reached us first. */
import { placeKey } from '../ledger/keys.ts';
import type { Described } from '../ledger/plan.ts';
import { described } from '../ledger/plan.ts';
import { OperationalError } from '../platform/errors.ts';
import type { StreamMessage } from '../platform/nats/bus.ts';
import type { Cause } from '../platform/topology.ts';

export interface CauseSources {
  /** Of these places, the keys (ledger/keys.ts) of those whose message is in the ledger. */
  readonly committed: (places: readonly Cause[]) => Promise<ReadonlySet<string>>;
  /** The message from the bus, or null when it is gone or is no event. */
  readonly fetch: (cause: Cause, effect: StreamMessage) => Promise<StreamMessage | null>;
}

export interface Ordered {
  /** Causes first, fetched ones among them; each message once. */
  readonly messages: readonly Described[];
  /** Those whose cause could not be fetched: to be tried again later. */
  readonly failed: ReadonlyMap<StreamMessage, OperationalError>;
}

export async function causesFirst(batch: readonly Described[], sources: CauseSources): Promise<Ordered> {
  const order = new Order(batch, sources);
  await order.askForCauses();
  const failed = new Map<StreamMessage, OperationalError>();
  for (const one of batch) {
    if (order.placeAtOnce(one)) continue;
    try {
      await order.place(one);
    } catch (error) {
      if (!(error instanceof OperationalError)) throw error;
      failed.set(one.message, error);
    }
  }
  if (failed.size > 0) for (const { message } of order.messages) failed.delete(message);
  return { messages: order.messages, failed };
}

class Order {
  readonly #batch: readonly Described[];
  readonly #sources: CauseSources;
  readonly #placed = new Map<string, Described>();
  /** What the ledger has said of a place. */
  readonly #committed = new Map<string, boolean>();
  #inBatch: ReadonlyMap<string, Described> | null = null;

  constructor(batch: readonly Described[], sources: CauseSources) {
    this.#batch = batch;
    this.#sources = sources;
  }

  get messages(): readonly Described[] {
    return [...this.#placed.values()];
  }

  /** One question about all causes, since they are usually there. */
  async askForCauses(): Promise<void> {
    const causes = new Map<string, Cause>();
    for (const { cause, facts } of this.#batch)
      if (cause !== null && facts.cause !== null) causes.set(cause, facts.cause);
    await this.#ask(causes);
  }

  async #ask(places: ReadonlyMap<string, Cause>): Promise<void> {
    if (places.size === 0) return;
    const committed = await this.#sources.committed([...places.values()]);
    for (const key of places.keys()) this.#committed.set(key, committed.has(key));
  }

  /** Places it if its cause is known, as it nearly always is. Returns whether it did. */
  placeAtOnce(one: Described): boolean {
    if (this.#placed.has(one.place)) return true;
    const { cause } = one;
    if (cause !== null && !this.#placed.has(cause) && this.#committed.get(cause) !== true) return false;
    this.#placed.set(one.place, one);
    return true;
  }

  async place(one: Described): Promise<void> {
    for (const link of await this.#chainTo(one)) this.#placed.set(link.place, link);
  }

  /** The causes of `one` that are not known yet, the first one first, and the message itself last. */
  async #chainTo(one: Described): Promise<Described[]> {
    const chain = [one];
    let cause = await this.#unknownCause(one);
    // A redelivery has had its turn.
    if (cause !== null && (await this.#isKnown(one.message))) return chain;
    while (cause !== null) {
      const found = await this.#find(cause, chain.at(-1) ?? one);
      // Gone from the bus uncommitted: only an operator's hand does that. The event itself must still be recorded.
      if (found === null) break;
      chain.push(found);
      cause = await this.#unknownCause(found);
    }
    return chain.reverse();
  }

  async #find(cause: Cause, effect: Described): Promise<Described | null> {
    this.#inBatch ??= new Map(this.#batch.map((one) => [one.place, one]));
    const here = this.#inBatch.get(placeKey(cause));
    if (here !== undefined) return here;
    const fetched = await this.#sources.fetch(cause, effect.message);
    return fetched === null ? null : described(fetched);
  }

  async #unknownCause({ facts: { cause } }: Described): Promise<Cause | null> {
    return cause === null || (await this.#isKnown(cause)) ? null : cause;
  }

  async #isKnown(place: Cause): Promise<boolean> {
    const key = placeKey(place);
    if (this.#placed.has(key)) return true;
    if (!this.#committed.has(key)) await this.#ask(new Map([[key, place]]));
    return this.#committed.get(key) === true;
  }
}
