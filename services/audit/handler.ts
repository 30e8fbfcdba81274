/** Deliveries to the ledger and to the span store. A handler returns when what it was given is on disk. */
import type { Clock } from '../platform/clock.ts';
import type { Handler } from '../platform/consume.ts';
import type { Committer } from './committer.ts';
import { GroupCommit } from './group-commit.ts';
import type { SpanStore } from './span-store.ts';
import type { StoredSpan } from './spans.ts';
import { parseSpans } from './spans.ts';

/** Any bytes are recorded, so no event is ever poison here. */
export function eventHandler(committer: Committer): Handler {
  return (delivery) => committer.record(delivery);
}

/** Throws PoisonError for what are no spans. */
export function spanHandler(spans: SpanStore, clock: Clock): Handler {
  const group = new GroupCommit<readonly StoredSpan[]>(async (batch) => {
    spans.add(batch.flatMap((pending) => pending.item));
    for (const pending of batch) pending.resolve();
  });
  return async (delivery) => group.submit(parseSpans(delivery.data), clock.nowMs());
}
