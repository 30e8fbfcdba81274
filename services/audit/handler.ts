/** Deliveries to the ledger and to the span store. A handler returns when what it was given is on disk. */
import type { LedgerWriter, StoredSpan } from '../ledger/store.ts';
import type { Clock } from '../platform/clock.ts';
import type { Handler } from '../platform/consume.ts';
import type { FromStream } from '../platform/events.ts';
import { checkSigned } from '../platform/events.ts';
import type { Bus } from '../platform/nats/bus.ts';
import { checkEvent } from './authenticity.ts';
import type { Committer } from './committer.ts';
import { GroupCommit } from './group-commit.ts';
import { parseSpans } from './spans.ts';

/** Resolves when the message is recorded. Rejects as a handler does, where it is no event or cannot be recorded now. */
export type Recorder = (message: FromStream) => Promise<void>;

/** Any bytes of a submitter are recorded; of services, those that a service stands by. */
export function recorder(bus: Bus, committer: Committer): Recorder {
  return (message) => committer.record(message, checkEvent(bus, message));
}

/** Throws PoisonError for what are no spans, or not by the service that they name. */
export function spanHandler(bus: Bus, store: LedgerWriter, clock: Clock): Handler {
  const group = new GroupCommit<readonly StoredSpan[]>(async (batch) => {
    await store.addSpans(batch.flatMap((pending) => pending.item));
    for (const pending of batch) pending.resolve();
  });
  return async (delivery) => {
    checkSigned(bus, delivery);
    await group.submit(parseSpans(delivery.data), clock.nowMs());
  };
}
