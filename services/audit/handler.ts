/** Deliveries to the ledger and to the span store. A handler returns when what it was given is on disk. */
import type { Clock } from '../platform/clock.ts';
import type { Handler } from '../platform/consume.ts';
import { checkSigned } from '../platform/events.ts';
import type { Bus } from '../platform/nats/bus.ts';
import { checkEvent } from './authenticity.ts';
import type { Committer } from './committer.ts';
import { GroupCommit } from './group-commit.ts';
import type { SpanStore } from './span-store.ts';
import type { StoredSpan } from './spans.ts';
import { parseSpans } from './spans.ts';

/** Any bytes of a submitter are recorded; of services, those that a service stands by. */
export function eventHandler(bus: Bus, committer: Committer): Handler {
  return async (delivery) => {
    checkEvent(bus, delivery);
    await committer.record(delivery);
  };
}

/** Throws PoisonError for what are no spans, or not by the service that they name. */
export function spanHandler(bus: Bus, spans: SpanStore, clock: Clock): Handler {
  const group = new GroupCommit<readonly StoredSpan[]>(async (batch) => {
    spans.add(batch.flatMap((pending) => pending.item));
    for (const pending of batch) pending.resolve();
  });
  return async (delivery) => {
    checkSigned(bus, delivery);
    await group.submit(parseSpans(delivery.data), clock.nowMs());
  };
}
