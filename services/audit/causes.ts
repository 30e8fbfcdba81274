/** Order respects cause: an event is committed after the event that caused it, whichever reached us first. */
import { OperationalError } from '../platform/errors.ts';
import type { StreamMessage } from '../platform/nats/bus.ts';
import type { Cause } from '../platform/topology.ts';
import { ledgerCause } from './message-facts.ts';

export interface CauseSources {
  /** True when the message is in the ledger. */
  readonly committed: (cause: Cause) => boolean;
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
  const inBatch = new Map(batch.map((message) => [keyOf(message), message]));
  const placed = new Map<string, StreamMessage>();
  const failed = new Map<StreamMessage, OperationalError>();
  const known = (cause: Cause) => placed.has(keyOf(cause)) || sources.committed(cause);
  const find = async (cause: Cause, effect: StreamMessage) =>
    inBatch.get(keyOf(cause)) ?? (await sources.fetch(cause, effect));
  for (const message of batch) {
    if (placed.has(keyOf(message))) continue;
    try {
      for (const link of await chainTo(message, known, find)) placed.set(keyOf(link), link);
    } catch (error) {
      if (!(error instanceof OperationalError)) throw error;
      failed.set(message, error);
    }
  }
  for (const message of failed.keys()) if (placed.has(keyOf(message))) failed.delete(message);
  return { messages: [...placed.values()], failed };
}

/** The causes of `message` that are not known yet, the first one first, and the message itself last. */
async function chainTo(
  message: StreamMessage,
  known: (cause: Cause) => boolean,
  find: (cause: Cause, effect: StreamMessage) => Promise<StreamMessage | null>,
): Promise<StreamMessage[]> {
  const chain = [message];
  for (let cause = known(message) ? null : ledgerCause(message); cause !== null && !known(cause); ) {
    const found = await find(cause, chain.at(-1) ?? message);
    // Gone from the bus uncommitted: only an operator's hand does that. The event itself must still be recorded.
    if (found === null) break;
    chain.push(found);
    cause = ledgerCause(found);
  }
  return chain.reverse();
}

const keyOf = (message: Cause): string => `${message.stream}:${message.sequence}`;
