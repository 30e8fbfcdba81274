/** W3C trace context (https://www.w3.org/TR/trace-context/), as it travels in the header `traceparent`. */
import { randomBytes } from 'node:crypto';

export interface TraceParent {
  readonly traceId: string;
  readonly spanId: string;
}

const traceparentPattern = /^00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}$/;

/** Parses a traceparent; null when it is none. All zeros mean "no trace". */
export function parseTraceparent(text: string | null | undefined): TraceParent | null {
  const [, traceId, spanId] = traceparentPattern.exec(text ?? '') ?? [];
  if (traceId === undefined || spanId === undefined || /^0+$/.test(traceId) || /^0+$/.test(spanId))
    return null;
  return { traceId, spanId };
}

/** The ids in a traceparent that has been parsed before. */
export const idsIn = (traceparent: string): TraceParent => ({
  traceId: traceparent.slice(3, 35),
  spanId: traceparent.slice(36, 52),
});

/** A sampled span's traceparent. */
export function formatTraceparent(parent: TraceParent): string {
  return `00-${parent.traceId}-${parent.spanId}-01`;
}

/** Fresh random ids, for a span that does not exist yet. */
export function newTraceParent(): TraceParent {
  return { traceId: nonZeroHex(16), spanId: nonZeroHex(8) };
}

function nonZeroHex(length: number): string {
  const bytes = randomBytes(length);
  if (bytes.every((byte) => byte === 0)) bytes[0] = 1;
  return bytes.toString('hex');
}
