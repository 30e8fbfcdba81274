/** Collects the objects of a bucket whose time is over, from time to time, until it is stopped. */
import { messageOf } from './errors.ts';
import type { Logger } from './log.ts';
import type { ObjectBucket } from './nats/objects.ts';

export interface CollectingOptions {
  readonly bucket: ObjectBucket;
  readonly log: Logger;
  readonly nowMs: () => number;
  /** Ids of objects that somebody is just writing, however long that takes. */
  readonly growing?: () => ReadonlySet<string>;
  /** Told after each look what there is. */
  readonly onKept?: (kept: readonly { readonly name: string; readonly size: number }[]) => void;
}

/** Chunks without an object are removed at the second look that finds them: longer than any write takes. */
const lookMs = 30 * 60_000;

/** Looks at once, then every half hour. Returns its stop. */
export function keepCollecting(options: CollectingOptions): () => void {
  const { bucket, log, nowMs, growing = () => new Set<string>(), onKept = () => undefined } = options;
  let suspects: ReadonlySet<string> = new Set();
  const look = async () => {
    try {
      const found = await bucket.collect(nowMs(), growing(), suspects);
      suspects = found.suspects;
      onKept(found.kept);
      const [objects, orphans] = [found.removed.length, found.dropped.length];
      if (objects + orphans > 0) log.info({ objects, orphans }, 'objects collected');
    } catch (error) {
      log.warn({ error: messageOf(error) }, 'objects could not be collected; will try again');
    }
  };
  const timer = setInterval(() => void look(), lookMs);
  void look();
  return () => clearInterval(timer);
}
