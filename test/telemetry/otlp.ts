/** OTLP as JSON (opentelemetry.io/docs/specs/otlp), read by the tests themselves and not by the code that they test. */

export interface OtlpSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string;
  readonly service: string;
  readonly name: string;
  readonly failed: boolean;
  readonly attributes: Readonly<Record<string, unknown>>;
  /** Span ids. */
  readonly links: readonly string[];
}

export type OtlpValue = Readonly<Record<string, unknown>>;

export interface OtlpAttribute {
  readonly key: string;
  readonly value: OtlpValue;
}

interface ResourceSpans {
  readonly resource: { readonly attributes?: readonly OtlpAttribute[] };
  readonly scopeSpans: readonly { readonly spans: readonly RawSpan[] }[];
}

interface RawSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly attributes?: readonly OtlpAttribute[];
  readonly links?: readonly { readonly spanId: string }[];
  readonly status?: { readonly code?: number | string };
}

export function spansIn({ resourceSpans }: { readonly resourceSpans: readonly ResourceSpans[] }): OtlpSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) => {
    const service = String(attributesOf(resource.attributes)['service.name']);
    return scopeSpans.flatMap(({ spans }) => spans.map((span) => spanOf(span, service)));
  });
}

function spanOf(span: RawSpan, service: string): OtlpSpan {
  return {
    traceId: span.traceId,
    spanId: span.spanId,
    parentSpanId: span.parentSpanId ?? '',
    service,
    name: span.name,
    failed: span.status?.code === 2 || span.status?.code === 'STATUS_CODE_ERROR',
    attributes: attributesOf(span.attributes),
    links: (span.links ?? []).map(({ spanId }) => spanId),
  };
}

export function attributesOf(attributes: readonly OtlpAttribute[] = []): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, plainValue(value)]));
}

/** 64-bit integers are strings in OTLP's JSON. */
function plainValue(value: OtlpValue): unknown {
  return 'intValue' in value ? Number(value.intValue) : Object.values(value)[0];
}
