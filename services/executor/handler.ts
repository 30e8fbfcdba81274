/** Takes one piece of work: looks at the job's state, claims it where it may, and has the attempt run. */
import type { JobRouted } from '../../schemas/generated/events.ts';
import { OperationalError, PoisonError } from '../platform/errors.ts';
import { asCause, outgoing, readServiceEvent } from '../platform/events.ts';
import type { JobEntry, JobSnapshot } from '../platform/job-state.ts';
import { endJob, LeaseObserver, republish } from '../platform/job-state.ts';
import { recordQueueWait } from '../platform/metrics.ts';
import type { Delivery } from '../platform/nats/bus.ts';
import type { Span } from '../platform/telemetry.ts';
import { failSpan, messagingAttributes, SpanKind, traceparentOf } from '../platform/telemetry.ts';
import type { JobRef } from '../platform/topology.ts';
import { eventId, headerNames, kvKey, subjects } from '../platform/topology.ts';
import type { TrustedRun, TrustStore } from '../trust/index.ts';
import { findRevocation } from '../trust/index.ts';
import { runAttempt } from './attempt.ts';
import type { StopReason, Unfit } from './decide.ts';
import { decideClaim, unfitFor } from './decide.ts';
import { Lease } from './lease.ts';
import type { MemoryBudget } from './memory-budget.ts';
import type { ExecutorParts } from './parts.ts';

/** After so many deliveries nobody else will take what this executor cannot. */
const declinedDeliveries = 5;
const unknownJobDeliveries = 10;

/** A job that this process works on. */
interface Underway {
  readonly stop: AbortController;
  lease: Lease | null;
  trusted: TrustedRun | null;
  done: Promise<void>;
}

type Job = JobRouted & JobRef;

export class WorkHandler {
  readonly #parts: ExecutorParts;
  readonly #budget: MemoryBudget;
  readonly #observer: LeaseObserver;
  readonly #underway = new Map<string, Underway>();
  /** Entries that we changed last and left, by revision: nobody need wait for that lease. */
  readonly #left = new Map<string, number>();

  constructor(parts: ExecutorParts, budget: MemoryBudget) {
    this.#parts = parts;
    this.#budget = budget;
    this.#observer = new LeaseObserver(parts.context.clock);
  }

  /** Resolves when the message is done with: its job has ended. */
  handle(delivery: Delivery): Promise<void> {
    const job = readServiceEvent(this.#parts.context.bus, 'JobRouted', delivery);
    const key = kvKey(job);
    const known = this.#underway.get(key);
    // Delivered again while it runs here, since its message was not kept alive for a while: one run settles both.
    if (known !== undefined) return known.done;
    const underway: Underway = {
      stop: new AbortController(),
      lease: null,
      trusted: null,
      done: Promise.resolve(),
    };
    this.#underway.set(key, underway);
    underway.done = this.#take(job, delivery, underway).finally(() => this.#underway.delete(key));
    return underway.done;
  }

  /** The router says that there is something new in a job's entry. */
  onCancelNotice(key: string): void {
    this.#underway.get(key)?.lease?.renew();
  }

  /** Ends all jobs; each records that the executor was stopped. */
  endAll(): void {
    for (const { stop } of this.#underway.values()) stop.abort({ kind: 'shutdown' } satisfies StopReason);
  }

  /** Ends running jobs whose plugin or signers are trusted no more. */
  endRevoked(store: TrustStore): void {
    for (const underway of this.#underway.values()) endIfRevoked(underway, store);
  }

  async #take(job: Job, delivery: Delivery, underway: Underway): Promise<void> {
    const giveBack = await this.#budget.reserve(job.spec.limits.memoryBytes);
    try {
      if (underway.stop.signal.aborted)
        throw steadily(delivery, 1000, 'STOPPING', 'this executor is being stopped');
      await this.#decide(job, delivery, underway);
    } finally {
      giveBack();
    }
  }

  async #decide(job: Job, delivery: Delivery, underway: Underway): Promise<void> {
    const { states, config, context } = this.#parts;
    const key = kvKey(job);
    const snapshot = await states.read(job);
    if (snapshot === null) throw unknownJob(delivery, key);
    const action = decideClaim(snapshot.entry, {
      self: config.id,
      leftByUs: this.#left.get(key) === snapshot.revision,
      leaseLost: this.#observer.unchangedMs(snapshot) > config.leaseMs,
      nowMs: context.clock.nowMs(),
    });
    if (action.kind === 'republish') return this.#republish(key, snapshot.entry);
    if (action.kind === 'wait') throw steadily(delivery, config.leaseMs / 5, action.code, action.message);
    const unfit = unfitFor(job, {
      memoryBudgetBytes: this.#budget.totalBytes,
      allowHostNetwork: config.allowHostNetwork,
      trust: await this.#parts.trust.current(),
    });
    if (unfit !== null) return this.#decline(job, delivery, snapshot, unfit);
    await this.#inSpan(job, delivery, (span) =>
      this.#claimAndRun(job, delivery, { snapshot, entry: action.entry, underway, span }),
    );
  }

  async #republish(key: string, entry: JobEntry): Promise<void> {
    this.#left.delete(key);
    this.#observer.forget(key);
    await republish(this.#parts.context.bus, entry);
  }

  #inSpan(job: Job, delivery: Delivery, work: (span: Span) => Promise<void>): Promise<void> {
    const attributes = {
      ...messagingAttributes('process', `work.${job.runtime}.${job.deviceClass}`),
      'sandbus.job.id': job.jobId,
      'sandbus.tenant': job.tenant,
      'sandbus.plugin.name': job.plugin.name,
      'sandbus.runtime': job.runtime,
      'sandbus.executor': this.#parts.config.id,
    };
    const parent = delivery.headers[headerNames.traceparent];
    return this.#parts.context.telemetry.within(
      'execute',
      { kind: SpanKind.CONSUMER, parent, attributes },
      work,
    );
  }

  async #claimAndRun(
    job: Job,
    delivery: Delivery,
    at: { snapshot: JobSnapshot; entry: JobEntry; underway: Underway; span: Span },
  ): Promise<void> {
    const { telemetry, log } = this.#parts.context;
    const { underway, span } = at;
    const { stop } = underway;
    const key = kvKey(job);
    const lease = await telemetry.within('claim', { parent: span }, () =>
      Lease.take(this.#parts.states, at.snapshot, at.entry, {
        leaseMs: this.#parts.config.leaseMs,
        clock: this.#parts.context.clock,
        onCancel: (cancel) => stop.abort({ kind: 'cancel', ...cancel } satisfies StopReason),
        onLost: (message) => {
          log.warn({ job: key, message }, 'lease lost');
          stop.abort({ kind: 'lease-lost', message } satisfies StopReason);
        },
      }),
    );
    if (lease !== null) measureWait(job, this.#parts.context.clock.nowMs());
    if (lease === null) throw steadily(delivery, 200, 'CLAIM_RACE', `another executor was first at ${key}`);
    log.info({ job: key, trace: span.spanContext().traceId, attempt: lease.entry.attempt + 1 }, 'claimed');
    underway.lease = lease;
    const onTrusted = (run: TrustedRun) => {
      underway.trusted = run;
      // The store may have changed since it was asked.
      endIfRevoked(underway, this.#parts.trust.latest.store);
    };
    try {
      await runAttempt(this.#parts, {
        job,
        cause: asCause(delivery),
        span,
        lease,
        stop: stop.signal,
        onTrusted,
      });
      this.#left.delete(key);
      this.#observer.forget(key);
    } catch (error) {
      if (!lease.lost) this.#left.set(key, lease.revision);
      throw error;
    } finally {
      lease.release();
    }
  }

  /** First another executor gets its chance; when nobody took the job, it is refused, so that it does not wait for ever. */
  async #decline(job: Job, delivery: Delivery, seen: JobSnapshot, unfit: Unfit): Promise<void> {
    const { reason, code, message } = unfit;
    if (reason === null || delivery.deliveryCount < declinedDeliveries)
      throw steadily(delivery, 1000, code, message);
    const { bus, clock } = this.#parts.context;
    await this.#inSpan(job, delivery, async (span) => {
      failSpan(span, code, message);
      const event = outgoing(
        'JobRejected',
        {
          tenant: job.tenant,
          jobId: job.jobId,
          rejectedAt: Math.round(clock.nowMs() * 1000),
          stage: 'executor',
          reason,
          detail: message,
          pluginName: job.plugin.name,
          pluginSha256: job.plugin.sha256,
        },
        {
          subject: subjects.job('rejected', job),
          id: eventId('executor', 'rejected', asCause(delivery), job),
          cause: asCause(delivery),
          traceparent: traceparentOf(span),
        },
      );
      const unclaimed = (entry: JobEntry) => entry.state === 'open' && entry.beat === seen.entry.beat;
      if ((await endJob(bus, this.#parts.states, job, event, unclaimed)) === null)
        throw steadily(delivery, 1000, code, message);
    });
  }
}

function measureWait({ runtime, deviceClass, routedAt }: Job, nowMs: number): void {
  const attributes = { 'sandbus.runtime': runtime, 'sandbus.device_class': deviceClass };
  recordQueueWait(nowMs - routedAt / 1000, attributes);
}

function endIfRevoked({ stop, trusted }: Underway, store: TrustStore | null): void {
  const revoked = trusted === null || store === null ? null : findRevocation(trusted, store);
  if (revoked !== null) stop.abort({ kind: 'revoked', message: revoked.detail } satisfies StopReason);
}

/** A retry after the same time at each delivery: the consume loop doubles the delay that it is given. */
function steadily(delivery: Delivery, delayMs: number, code: string, message: string): OperationalError {
  const retryMs = delayMs / 2 ** Math.min(10, delivery.deliveryCount - 1);
  return new OperationalError(code, message, { retryMs });
}

function unknownJob(delivery: Delivery, key: string): Error {
  const message = `job ${key} has no state: it was never verified here, or its state is gone`;
  return delivery.deliveryCount > unknownJobDeliveries
    ? new PoisonError('NO_SUCH_JOB', message)
    : new OperationalError('NO_SUCH_JOB', message);
}
