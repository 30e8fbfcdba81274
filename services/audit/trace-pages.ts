/** The spans of a job. */
import type { LedgerReader, StoredSpan } from '../ledger/store.ts';
import type { JobRef } from '../platform/topology.ts';
import { fitting } from './pages.ts';

const longestTrace = 2000;

/** Spans of the job's trace, by start, as far as they fit into one reply. */
export async function spansReply(store: LedgerReader, job: JobRef) {
  const traceId = (await store.job(job))?.traceId ?? null;
  const spans = traceId === null ? [] : await store.spansOfTrace(traceId, longestTrace);
  return { spans: fitting(spans, longestTrace, spanView) };
}

export function spanView(span: StoredSpan) {
  const { startMicros, endMicros, ...rest } = span;
  return { ...rest, startMs: startMicros / 1000, endMs: endMicros / 1000 };
}
