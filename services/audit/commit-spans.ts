/**
 * The span of each commit: one for each new event of a job, from its arrival to its commit. A redelivery makes none, nor
 * does an event that belongs to no trace: its span would be a trace of its own beside that of the job.
 *
 * The store of spans is here, so they do not go around by the bus, at many times the cost; unless they go to a collector
 * too, which gets the very same from the SDK.
 */
import { randomUUID } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { hasJob } from '../ledger/message-facts.ts';
import type { LedgerWriter, StoredSpan } from '../ledger/store.ts';
import { toMicros } from '../platform/clock.ts';
import type { AuditRecord } from '../platform/codec.ts';
import type { Logger } from '../platform/log.ts';
import { messagingAttributes, SpanKind, type Telemetry } from '../platform/telemetry.ts';
import { idsIn } from '../platform/traceparent.ts';
import { Worker } from './worker.ts';

const name = 'audit.commit';
/** OTLP's number for it (opentelemetry/proto/trace/v1/trace.proto). */
const kindConsumer = 5;
const pauseMs = 250;
/** Kept while the store takes none; then the oldest go. */
const mostWaiting = 50_000;
/** Stored at one time. */
const mostAtOnce = 512;

export interface Committed {
  readonly record: AuditRecord;
  /** When the message arrived; null when it was fetched as the cause of another one. */
  readonly arrivedAtMs: number | null;
}

export class CommitSpans {
  readonly worker: Worker;
  readonly #store: Pick<LedgerWriter, 'addSpans'>;
  readonly #telemetry: Telemetry;
  #waiting: Waiting[] = [];

  readonly #hasTurn: () => Promise<void>;

  constructor(
    store: Pick<LedgerWriter, 'addSpans'>,
    telemetry: Telemetry,
    log: Logger,
    turn: () => Promise<void>,
  ) {
    this.#store = store;
    this.#telemetry = telemetry;
    this.#hasTurn = turn;
    this.worker = new Worker('spans', () => this.#turn(), log);
  }

  add(committed: readonly Committed[], nowMs: number): void {
    for (const { record, arrivedAtMs } of committed) {
      if (record.traceparent === null || !hasJob(record)) continue;
      if (this.#telemetry.exported) this.#export({ record, arrivedAtMs });
      else this.#waiting.push(waiting(record, record.traceparent, arrivedAtMs ?? nowMs, nowMs));
    }
    if (this.#waiting.length > mostWaiting) this.#waiting.splice(0, this.#waiting.length - mostWaiting);
  }

  #export({ record, arrivedAtMs }: Committed): void {
    const options = {
      kind: SpanKind.CONSUMER,
      parent: record.traceparent,
      attributes: attributesOf(record),
      ...(arrivedAtMs === null ? {} : { startMs: arrivedAtMs }),
    };
    this.#telemetry.span(name, options).end();
  }

  async #turn(): Promise<number> {
    while (this.#waiting.length > 0) {
      // A long backlog must not cost the spans of its beginning. Commits take turns with them then.
      await (this.#waiting.length < mostWaiting / 2 ? this.#hasTurn() : nextTurn());
      await this.#flushSome();
    }
    return pauseMs;
  }

  async flush(): Promise<void> {
    while (this.#waiting.length > 0) await this.#flushSome();
  }

  /** Spans that cannot be stored now are kept for the next time. */
  async #flushSome(): Promise<void> {
    const spans = this.#waiting.splice(0, mostAtOnce);
    try {
      await this.#store.addSpans(spans.map(storedSpan));
    } catch (error) {
      this.#waiting.unshift(...spans);
      throw error;
    }
  }
}

/** The last 16 digits of a random UUID: Node has these ready, and they are never all zero. */
const newSpanId = (): string => randomUUID().slice(19).replace('-', '');

/** What the span is made of when it is stored. Not the record, since many wait, and payloads are large. */
interface Waiting
  extends Pick<AuditRecord, 'subject' | 'eventId' | 'tenant' | 'jobId' | 'kind' | 'sequence'> {
  readonly traceparent: string;
  readonly startMs: number;
  readonly endMs: number;
}

function waiting(
  { subject, eventId, tenant, jobId, kind, sequence }: AuditRecord,
  traceparent: string,
  startMs: number,
  endMs: number,
): Waiting {
  return { subject, eventId, tenant, jobId, kind, sequence, traceparent, startMs, endMs };
}

function storedSpan(one: Waiting): StoredSpan {
  const { traceId, spanId } = idsIn(one.traceparent);
  return {
    ...{ traceId, spanId: newSpanId(), parentSpanId: spanId, service: 'audit', name },
    ...{ kind: kindConsumer, startMicros: toMicros(one.startMs), endMicros: toMicros(one.endMs) },
    ...{ status: 'unset', statusMessage: null, attributes: attributesOf(one) },
    links: [{ traceId, spanId }],
  };
}

function attributesOf(record: Omit<Waiting, 'traceparent' | 'startMs' | 'endMs'>) {
  return {
    ...messagingAttributes('process', record.subject),
    'messaging.message.id': record.eventId,
    'sandbus.tenant': record.tenant,
    'sandbus.job.id': record.jobId,
    'sandbus.event.kind': record.kind,
    'sandbus.ledger.sequence': record.sequence,
  };
}
