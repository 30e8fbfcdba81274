/** Ids that the submitter chooses: of the job, and of the trace that it begins. */
import { randomBytes } from 'node:crypto';

/** A UUIDv7 (RFC 9562): 48 bits of milliseconds, version, 12 random bits, variant, 62 random bits. */
export function uuidV7(nowMs: number = Date.now(), random: Uint8Array = randomBytes(10)): string {
  const bytes = Buffer.alloc(16);
  bytes.writeUIntBE(nowMs, 0, 6);
  bytes.set(random.subarray(0, 10), 6);
  bytes[6] = 0x70 | ((bytes[6] ?? 0) & 0x0f);
  bytes[8] = 0x80 | ((bytes[8] ?? 0) & 0x3f);
  const hex = bytes.toString('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}

export interface TraceIds {
  readonly traceId: string;
  readonly spanId: string;
}

/** Fresh random ids; all zeros would mean "no trace". */
export function randomTraceIds(): TraceIds {
  return { traceId: nonZeroHex(16), spanId: nonZeroHex(8) };
}

export function toTraceparent(ids: TraceIds): string {
  return `00-${ids.traceId}-${ids.spanId}-01`;
}

const traceparentPattern = /^00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}$/;

/** The ids of a W3C traceparent, or null when it is none. */
export function parseTraceparent(text: string): TraceIds | null {
  const [, traceId, spanId] = traceparentPattern.exec(text) ?? [];
  if (traceId === undefined || spanId === undefined || /^0+$/.test(traceId) || /^0+$/.test(spanId))
    return null;
  return { traceId, spanId };
}

function nonZeroHex(length: number): string {
  const bytes = randomBytes(length);
  if (bytes.every((byte) => byte === 0)) bytes[0] = 1;
  return bytes.toString('hex');
}
