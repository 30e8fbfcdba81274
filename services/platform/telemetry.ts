/**
 * Traces, and the start of the metrics. Every service exports its spans to the audit store over the bus (`trace.<service>`, OTLP as JSON) and, where
 * OTEL_EXPORTER_OTLP_ENDPOINT (or _TRACES_ENDPOINT) is set, to any collector by OTLP/HTTP. Context travels as W3C
 * `traceparent`.
 */
import type { Attributes, Context, Link, Span } from '@opentelemetry/api';
import { context, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { JsonTraceSerializer } from '@opentelemetry/otlp-transformer';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { NodeSDK } from '@opentelemetry/sdk-node';
import type { IdGenerator, SpanExporter } from '@opentelemetry/sdk-trace';
import { AlwaysOnSampler, BatchSpanProcessor, RandomIdGenerator } from '@opentelemetry/sdk-trace';
import { messageOf, OperationalError, PoisonError } from './errors.ts';
import type { MetricsOptions } from './metrics.ts';
import { metricReaders } from './metrics.ts';
import type { TraceParent } from './traceparent.ts';
import { formatTraceparent, parseTraceparent } from './traceparent.ts';

export type { Attributes, Span } from '@opentelemetry/api';
export { SpanKind } from '@opentelemetry/api';

/** Takes one batch of spans, OTLP/JSON bytes. */
export type SpanSink = (otlpJson: Uint8Array) => Promise<void>;

export interface TelemetryOptions {
  readonly service: string;
  /** Tells two processes of one service apart. */
  readonly instance?: string;
  readonly version?: string;
  readonly sink: SpanSink;
  /** Whether spans go to a collector too; the exporter reads its address from the standard variables. */
  readonly exported: boolean;
  readonly metrics: MetricsOptions;
}

/** Random ids, except that a span can be given those that its submitter has chosen for it. */
class ChosenIds implements IdGenerator {
  readonly #random = new RandomIdGenerator();
  #next: TraceParent | null = null;

  /** Runs `start`, which starts one span, with these ids. */
  using<T>(ids: TraceParent, start: () => T): T {
    this.#next = ids;
    try {
      return start();
    } finally {
      this.#next = null;
    }
  }
  generateTraceId(): string {
    return this.#next?.traceId ?? this.#random.generateTraceId();
  }
  generateSpanId(): string {
    return this.#next?.spanId ?? this.#random.generateSpanId();
  }
}

class SinkExporter implements SpanExporter {
  readonly #sink: SpanSink;

  constructor(sink: SpanSink) {
    this.#sink = sink;
  }
  export(...[spans, done]: Parameters<SpanExporter['export']>): void {
    const bytes = JsonTraceSerializer.serializeRequest(spans);
    const sent = bytes === undefined ? Promise.resolve() : this.#sink(bytes);
    sent.then(
      () => done({ code: 0 }),
      (error: unknown) => done({ code: 1, error: new Error(messageOf(error)) }),
    );
  }
  async shutdown(): Promise<void> {}
}

export interface SpanOptions {
  readonly kind?: SpanKind;
  /** traceparent of the message that caused this, or a span here; none makes a new trace. */
  readonly parent?: string | Span | null | undefined;
  /** traceparents of what else led here. The message that a consumer's span has as its parent is linked by itself. */
  readonly links?: readonly (string | null | undefined)[];
  readonly attributes?: Attributes;
  readonly startMs?: number;
}

export class Telemetry {
  readonly service: string;
  /** Whether spans go to a collector, besides the audit store. */
  readonly exported: boolean;
  readonly #sdk: NodeSDK;
  readonly #ids: ChosenIds;

  private constructor({ service, exported }: TelemetryOptions, sdk: NodeSDK, ids: ChosenIds) {
    this.service = service;
    this.exported = exported;
    this.#sdk = sdk;
    this.#ids = ids;
  }

  /** Starts the SDK of this process. */
  static start(options: TelemetryOptions): Telemetry {
    const ids = new ChosenIds();
    const exporters: SpanExporter[] = [new SinkExporter(options.sink)];
    if (options.exported) exporters.push(new OTLPTraceExporter());
    const sdk = new NodeSDK({
      resource: resourceFromAttributes({
        'service.name': options.service,
        'service.namespace': 'sandbus',
        ...(options.version === undefined ? {} : { 'service.version': options.version }),
        ...(options.instance === undefined ? {} : { 'service.instance.id': options.instance }),
      }),
      autoDetectResources: false,
      sampler: new AlwaysOnSampler(),
      idGenerator: ids,
      spanProcessors: exporters.map(
        (exporter) => new BatchSpanProcessor({ exporter, scheduledDelayMillis: 250 }),
      ),
      metricReaders: metricReaders(options.metrics),
      logRecordProcessors: [],
      instrumentations: [],
    });
    sdk.start();
    return new Telemetry(options, sdk, ids);
  }

  /** A span that the caller ends. */
  span(name: string, options: SpanOptions = {}): Span {
    const tracer = trace.getTracer('sandbus');
    return tracer.startSpan(
      name,
      {
        kind: options.kind ?? SpanKind.INTERNAL,
        attributes: options.attributes ?? {},
        links: linksOf(options),
        ...(options.startMs === undefined ? {} : { startTime: options.startMs }),
      },
      parentContext(options.parent),
    );
  }

  /** Runs `work` in a span, ends it, and marks it failed when `work` throws. */
  async within<T>(name: string, options: SpanOptions, work: (span: Span) => Promise<T>): Promise<T> {
    const span = this.span(name, options);
    try {
      return await context.with(trace.setSpan(context.active(), span), () => work(span));
    } catch (error) {
      failSpan(span, errorType(error), messageOf(error));
      throw error;
    } finally {
      span.end();
    }
  }

  /** Records a finished span under ids that somebody else has chosen: the submitter's own, on its behalf. */
  recordDelegated(
    name: string,
    ids: TraceParent,
    startMs: number,
    endMs: number,
    attributes: Attributes,
  ): void {
    const options = { root: true, kind: SpanKind.PRODUCER, startTime: startMs, attributes };
    const start = () => trace.getTracer('sandbus').startSpan(name, options, ROOT_CONTEXT);
    this.#ids.using(ids, start).end(Math.max(startMs, endMs));
  }

  /** Exports what is pending and stops. */
  async stop(): Promise<void> {
    await this.#sdk.shutdown().catch(() => undefined);
  }
}

/** The code where an error has one. */
function errorType(error: unknown): string {
  if (error instanceof OperationalError || error instanceof PoisonError) return error.code;
  return error instanceof Error ? error.name : 'Error';
}

/** Marks a span failed. `type` is `error.type`: a code, not a sentence. */
export function failSpan(span: Span, type: string, message: string): void {
  span.setAttribute('error.type', type);
  span.setStatus({ code: SpanStatusCode.ERROR, message });
}

/** The traceparent that makes the receiver's span a child of `span`. */
export function traceparentOf(span: Span): string {
  return formatTraceparent(span.spanContext());
}

/** Attributes of a message, by OpenTelemetry's messaging conventions. No job id in a span's name, only here. */
export function messagingAttributes(operation: 'publish' | 'process', destination: string): Attributes {
  return {
    'messaging.system': 'nats',
    'messaging.operation.type': operation === 'publish' ? 'send' : 'process',
    'messaging.operation.name': operation,
    'messaging.destination.name': destination,
  };
}

/** By the messaging conventions a consumer's span is linked to the context in which its message was made. */
function linksOf({ kind, parent, links = [] }: SpanOptions): Link[] {
  const own = kind === SpanKind.CONSUMER && typeof parent === 'string' ? [parent] : [];
  return [...own, ...links].flatMap((text) => {
    const ids = parseTraceparent(text);
    return ids === null ? [] : [{ context: { ...ids, traceFlags: 1, isRemote: true } }];
  });
}

function parentContext(parent: string | Span | null | undefined): Context {
  if (parent !== null && typeof parent === 'object') return trace.setSpan(ROOT_CONTEXT, parent);
  const ids = parseTraceparent(parent);
  return ids === null
    ? ROOT_CONTEXT
    : trace.setSpanContext(ROOT_CONTEXT, { ...ids, traceFlags: 1, isRemote: true });
}
