/** Spans as they come over the bus: OTLP, JSON encoding (opentelemetry.io/docs/specs/otlp, "JSON Protobuf Encoding"). */
import { z } from 'zod';
import type { Attributes, AttributeValue, StoredSpan } from '../ledger/store.ts';
import { PoisonError } from '../platform/errors.ts';

const integer = z.union([
  z.int(),
  z
    .string()
    .regex(/^-?\d{1,20}$/)
    .transform(Number),
]);
const hex = (digits: number) => z.string().regex(new RegExp(`^[0-9a-f]{${digits}}$`));
/** Nanoseconds since 1970 do not fit a JavaScript number; microseconds do. */
const nanosAsMicros = z
  .union([z.int().nonnegative(), z.string().regex(/^\d{1,20}$/)])
  .transform((nanos) => Number(BigInt(nanos) / 1000n))
  .refine(Number.isSafeInteger, 'must be nanoseconds since 1970');

const attribute = z.object({ key: z.string(), value: z.unknown() });
const span = z.object({
  traceId: hex(32),
  spanId: hex(16),
  parentSpanId: z.union([hex(16), z.literal('')]).optional(),
  name: z.string(),
  kind: z.int().min(0).max(5).default(0),
  startTimeUnixNano: nanosAsMicros,
  endTimeUnixNano: nanosAsMicros,
  attributes: z.array(attribute).default([]),
  links: z.array(z.object({ traceId: hex(32), spanId: hex(16) })).default([]),
  status: z.object({ code: z.int().default(0), message: z.string().optional() }).default({ code: 0 }),
});
const request = z.object({
  resourceSpans: z.array(
    z.object({
      resource: z.object({ attributes: z.array(attribute).default([]) }).default({ attributes: [] }),
      scopeSpans: z.array(z.object({ spans: z.array(span).default([]) })).default([]),
    }),
  ),
});

/** Throws PoisonError BAD_SPANS. */
export function parseSpans(bytes: Uint8Array): StoredSpan[] {
  const parsed = request.safeParse(parseJson(bytes));
  if (!parsed.success) throw new PoisonError('BAD_SPANS', `not OTLP spans: ${z.prettifyError(parsed.error)}`);
  return parsed.data.resourceSpans.flatMap(({ resource, scopeSpans }) => {
    const service = attributesOf(resource.attributes)['service.name'];
    const name = typeof service === 'string' ? service : 'unknown';
    return scopeSpans.flatMap(({ spans }) => spans.map((one) => storedSpan(one, name)));
  });
}

function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8'));
  } catch (cause) {
    throw new PoisonError('BAD_SPANS', 'spans are OTLP as JSON, and this is not JSON', cause);
  }
}

function storedSpan(
  span: z.infer<(typeof request)['shape']['resourceSpans']>[number]['scopeSpans'][number]['spans'][number],
  service: string,
): StoredSpan {
  return {
    traceId: span.traceId,
    spanId: span.spanId,
    parentSpanId: span.parentSpanId || null,
    service,
    name: span.name,
    kind: span.kind,
    startMicros: span.startTimeUnixNano,
    endMicros: span.endTimeUnixNano,
    status: (['unset', 'ok', 'error'] as const)[span.status.code] ?? 'unset',
    statusMessage: span.status.message || null,
    attributes: attributesOf(span.attributes),
    links: span.links,
  };
}

function attributesOf(list: readonly z.infer<typeof attribute>[]): Attributes {
  return Object.fromEntries(list.map(({ key, value }) => [key, attributeValue(value)]));
}

const anyValue = z.union([
  z.object({ stringValue: z.string() }).transform((v) => v.stringValue),
  z.object({ boolValue: z.boolean() }).transform((v) => v.boolValue),
  z.object({ intValue: integer }).transform((v) => v.intValue),
  z.object({ doubleValue: z.number() }).transform((v) => v.doubleValue),
  z.object({ bytesValue: z.string() }).transform((v) => v.bytesValue),
  z
    .object({ arrayValue: z.object({ values: z.array(z.unknown()).default([]) }) })
    .transform((v) => v.arrayValue),
]);

/** An attribute of a kind that we do not know is null, not a reason to lose the span. */
function attributeValue(value: unknown, depth = 0): AttributeValue {
  const known = anyValue.safeParse(value);
  if (!known.success || depth > 4) return null;
  if (typeof known.data !== 'object') return known.data;
  return known.data.values.map((inner) => attributeValue(inner, depth + 1));
}
