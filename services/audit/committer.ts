/** From deliveries to the ledger: causes first, one transaction for all that is queued, then the handlers return. */
import type { Ledger } from '../ledger/ledger.ts';
import { hasJob } from '../ledger/message-facts.ts';
import type { Clock } from '../platform/clock.ts';
import { toMicros } from '../platform/clock.ts';
import type { AuditRecord } from '../platform/codec.ts';
import type { Bus, StreamMessage } from '../platform/nats/bus.ts';
import { messagingAttributes, SpanKind, type Telemetry } from '../platform/telemetry.ts';
import { fetchCause } from './authenticity.ts';
import { causesFirst } from './causes.ts';
import type { Pending } from './group-commit.ts';
import { GroupCommit } from './group-commit.ts';

/** However many events come, the feed and the deletions go on. */
const longestWaitMs = 50;

export interface CommitterParts {
  readonly bus: Pick<Bus, 'messageAt' | 'identity'>;
  readonly ledger: Ledger;
  readonly telemetry: Telemetry;
  readonly clock: Clock;
  /** Told after each commit. */
  readonly onCommitted: (records: readonly AuditRecord[]) => void;
}

export class Committer {
  readonly #parts: CommitterParts;
  readonly #group = new GroupCommit<StreamMessage>((batch) => this.#commit(batch));

  constructor(parts: CommitterParts) {
    this.#parts = parts;
  }

  /** Resolves when the message is in the ledger, on disk. */
  record(message: StreamMessage): Promise<void> {
    return this.#group.submit(message, this.#parts.clock.nowMs());
  }

  /** For work that should let commits go first. */
  async letCommitsGoFirst(): Promise<void> {
    await this.#group.idle(longestWaitMs);
  }

  async #commit(batch: readonly Pending<StreamMessage>[]): Promise<void> {
    const { bus, ledger, clock, onCommitted } = this.#parts;
    const { messages, failed } = await causesFirst(
      batch.map((pending) => pending.item),
      {
        committed: (places) => ledger.held(places),
        fetch: (cause, effect) => fetchCause(bus, cause, effect),
      },
    );
    const records = await ledger.append(messages, toMicros(clock.nowMs()));
    this.#trace(batch, records);
    onCommitted(records);
    for (const pending of batch) {
      const failure = failed.get(pending.item);
      if (failure === undefined) pending.resolve();
      else pending.reject(failure);
    }
  }

  /**
   * One span for each new event of a job, from its arrival to its commit; a redelivery makes none, nor does an event that
   * belongs to no trace: its span would be a trace of its own beside that of the job.
   */
  #trace(batch: readonly Pending<StreamMessage>[], records: readonly AuditRecord[]): void {
    const arrivals = new Map(
      batch.map(({ item, receivedAtMs }) => [placeOf(item.stream, item.sequence), receivedAtMs]),
    );
    for (const record of records) {
      if (!hasJob(record) || record.traceparent === null) continue;
      const startMs = arrivals.get(placeOf(record.stream, record.streamSequence));
      this.#parts.telemetry
        .span('audit.commit', {
          kind: SpanKind.CONSUMER,
          parent: record.traceparent,
          attributes: spanAttributes(record),
          ...(startMs === undefined ? {} : { startMs }),
        })
        .end();
    }
  }
}

const placeOf = (stream: string, sequence: number): string => `${stream}:${sequence}`;

function spanAttributes(record: AuditRecord) {
  return {
    ...messagingAttributes('process', record.subject),
    'messaging.message.id': record.eventId,
    'sandbus.tenant': record.tenant,
    'sandbus.job.id': record.jobId,
    'sandbus.event.kind': record.kind,
    'sandbus.ledger.sequence': record.sequence,
  };
}
