/** Order respects cause: an event is committed after the event that caused it, whichever reached us first. */
import { placeKey } from '../ledger/keys.ts';
import { ledgerCause } from '../ledger/message-facts.ts';
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
  readonly messages: readonly StreamMessage[];
  /** Those whose cause could not be fetched: to be tried again later. */
  readonly failed: ReadonlyMap<StreamMessage, OperationalError>;
}

export async function causesFirst(batch: readonly StreamMessage[], sources: CauseSources): Promise<Ordered> {
  const order = new Order(batch, sources);
  await order.askForCauses();
  const failed = new Map<StreamMessage, OperationalError>();
  for (const message of batch) {
    try {
      await order.place(message);
    } catch (error) {
      if (!(error instanceof OperationalError)) throw error;
      failed.set(message, error);
    }
  }
  for (const message of failed.keys()) if (order.has(message)) failed.delete(message);
  return { messages: order.messages, failed };
}

class Order {
  readonly #batch: readonly StreamMessage[];
  readonly #sources: CauseSources;
  readonly #inBatch: ReadonlyMap<string, StreamMessage>;
  readonly #placed = new Map<string, StreamMessage>();
  /** What the ledger has said of a place. */
  readonly #committed = new Map<string, boolean>();

  constructor(batch: readonly StreamMessage[], sources: CauseSources) {
    this.#batch = batch;
    this.#sources = sources;
    this.#inBatch = new Map(batch.map((message) => [placeKey(message), message]));
  }

  get messages(): readonly StreamMessage[] {
    return [...this.#placed.values()];
  }

  has(message: StreamMessage): boolean {
    return this.#placed.has(placeKey(message));
  }

  /** One question about all causes, since they are usually there. */
  async askForCauses(): Promise<void> {
    await this.#ask(this.#batch.map(ledgerCause).filter((cause) => cause !== null));
  }

  async #ask(places: readonly Cause[]): Promise<void> {
    if (places.length === 0) return;
    const committed = await this.#sources.committed(places);
    for (const place of places) this.#committed.set(placeKey(place), committed.has(placeKey(place)));
  }

  async place(message: StreamMessage): Promise<void> {
    if (this.has(message)) return;
    for (const link of await this.#chainTo(message)) this.#placed.set(placeKey(link), link);
  }

  /** The causes of `message` that are not known yet, the first one first, and the message itself last. */
  async #chainTo(message: StreamMessage): Promise<StreamMessage[]> {
    const chain = [message];
    let cause = await this.#unknownCause(message);
    // A redelivery has had its turn.
    if (cause !== null && (await this.#isKnown(message))) return chain;
    while (cause !== null) {
      const found =
        this.#inBatch.get(placeKey(cause)) ?? (await this.#sources.fetch(cause, chain.at(-1) ?? message));
      // Gone from the bus uncommitted: only an operator's hand does that. The event itself must still be recorded.
      if (found === null) break;
      chain.push(found);
      cause = await this.#unknownCause(found);
    }
    return chain.reverse();
  }

  async #unknownCause(message: StreamMessage): Promise<Cause | null> {
    const cause = ledgerCause(message);
    return cause === null || (await this.#isKnown(cause)) ? null : cause;
  }

  async #isKnown(place: Cause): Promise<boolean> {
    const key = placeKey(place);
    if (this.#placed.has(key)) return true;
    if (!this.#committed.has(key)) await this.#ask([place]);
    return this.#committed.get(key) === true;
  }
}
