/**
 * Brings back the states of jobs when somebody has deleted the bucket `jobs`: what is in JOBS of a job tells how far it
 * has come. That is done only after a whole lease, so that every executor which held a job has noticed that it holds it no
 * more, and has ended it. From then on no start can come that is not on the bus: what has started is restored as started,
 * and no user code runs a second time.
 */
import type { JobVerified } from '../../schemas/generated/events.ts';
import { messageOf, OperationalError, PoisonError } from '../platform/errors.ts';
import { idOfMessage } from '../platform/event-keys.ts';
import { causeOf, checkSigned, readServiceEvent } from '../platform/events.ts';
import type { JobEntry } from '../platform/job-state.ts';
import { endedEntry, openEntry } from '../platform/job-state.ts';
import type { StreamMessage } from '../platform/nats/bus.ts';
import type { JobRef, Route } from '../platform/topology.ts';
import { headerNames, kvKey, subjects, terminalKinds } from '../platform/topology.ts';
import type { RouterParts } from './handler.ts';
import { handleCancel } from './handler.ts';

/** What the bus has of a job. */
export interface Evidence {
  readonly verified: Pick<
    JobVerified & JobRef,
    'tenant' | 'jobId' | 'submissionSequence' | 'spec' | 'concurrency'
  >;
  readonly verifiedSequence: number;
  readonly traceparent: string | null;
  readonly route: Route | null;
  /** Of the last start. */
  readonly started: { readonly attempt: number; readonly executor: string } | null;
  readonly terminal: StreamMessage | null;
}

/** The entry of a job that has lost its own. Pure. */
export function restoredEntry(evidence: Evidence): JobEntry {
  const { verified, route, started, terminal, traceparent } = evidence;
  const { deadline, maxAttempts } = verified.spec;
  const { submissionSequence, concurrency } = verified;
  const open = openEntry(verified, { submissionSequence, traceparent, deadline, maxAttempts, concurrency });
  if (terminal !== null) return endedEntry(open, outgoingOf(terminal));
  if (started !== null) return { ...open, ...route, ...started, state: 'started' };
  // Without a route it waits as if it had been held: whether it was routed and not said is not known.
  return route === null ? { ...open, held: evidence.verifiedSequence } : { ...open, ...route };
}

function outgoingOf(message: StreamMessage) {
  const { subject, data, headers } = message;
  return {
    ...{ subject, data, id: idOfMessage(headers) },
    cause: causeOf(headers) ?? { stream: message.stream, sequence: message.sequence },
    traceparent: headers[headerNames.traceparent] ?? null,
    signature: headers[headerNames.signature] ?? '',
  };
}

/** Beyond the lease: the observer and the executors do not look at the same moment. */
const marginMs = 2_000;

export class Restoration {
  readonly #parts: RouterParts;
  readonly #isKnown: (key: string) => boolean;
  #sinceMs: number | null = null;

  constructor(parts: RouterParts, isKnown: (key: string) => boolean) {
    this.#parts = parts;
    this.#isKnown = isKnown;
  }

  /** The bucket is new, or we are: some jobs may have no entry. */
  begin(): void {
    this.#sinceMs = this.#parts.context.clock.monotonicMs();
  }

  /** Throws OperationalError when the bus does not answer; then the next call tries again. */
  async tick(): Promise<void> {
    const { clock } = this.#parts.context;
    const waitMs = this.#parts.config.leaseMs + marginMs;
    if (this.#sinceMs === null || clock.monotonicMs() - this.#sinceMs < waitMs) return;
    const began = this.#sinceMs;
    await this.#restoreAll();
    if (this.#sinceMs === began) this.#sinceMs = null;
  }

  async #restoreAll(): Promise<void> {
    const { bus, log } = this.#parts.context;
    for (let next = 1; ; ) {
      const message = await bus.nextMessage('JOBS', next, 'job.verified.>');
      if (message === null) return;
      next = message.sequence + 1;
      try {
        await this.#restore(message);
      } catch (error) {
        if (error instanceof OperationalError) throw error;
        if (!(error instanceof PoisonError)) throw error;
        log.warn(
          { subject: message.subject, error: messageOf(error) },
          'not the event of a job: not restored',
        );
      }
    }
  }

  async #restore(message: StreamMessage): Promise<void> {
    const { context, states } = this.#parts;
    const job = readServiceEvent(context.bus, 'JobVerified', message);
    if (this.#isKnown(kvKey(job)) || (await states.read(job)) !== null) return;
    const entry = restoredEntry(await this.#gather(job, message));
    if ((await states.create(entry)) === null) return;
    context.log.warn({ job: kvKey(job), state: entry.state }, 'its state was gone: restored from the bus');
    const cancel = await context.bus.nextMessage('SUBMISSIONS', 1, subjects.job('cancel-requested', job));
    if (cancel !== null && entry.state !== 'ended') await handleCancel(this.#parts, cancel);
  }

  async #gather(verified: JobVerified & JobRef, message: StreamMessage): Promise<Evidence> {
    const { bus } = this.#parts.context;
    const work = await this.#last(subjects.workOf(verified));
    const routed = work === null ? null : readServiceEvent(bus, 'JobRouted', work);
    const start = await this.#last(subjects.job('started', verified));
    const started = start === null ? null : readServiceEvent(bus, 'JobStarted', start);
    const route = routed ?? started;
    const ends = await Promise.all(
      terminalKinds.map((kind) => bus.nextMessage('JOBS', 1, subjects.job(kind, verified))),
    );
    return {
      verified,
      verifiedSequence: message.sequence,
      traceparent: message.headers[headerNames.traceparent] ?? null,
      route: route === null ? null : { runtime: route.runtime, deviceClass: route.deviceClass },
      started: started === null ? null : { attempt: started.attempt, executor: started.executor },
      terminal: ends.find((end) => end !== null && this.#isSigned(end)) ?? null,
    };
  }

  #isSigned(message: StreamMessage): boolean {
    try {
      checkSigned(this.#parts.context.bus, message);
      return true;
    } catch (error) {
      if (error instanceof PoisonError) return false;
      throw error;
    }
  }

  /** The last signed message of the subject: of several starts the last one counts. */
  async #last(subject: string): Promise<StreamMessage | null> {
    const { bus } = this.#parts.context;
    let last: StreamMessage | null = null;
    for (let next = 1; ; ) {
      const found = await bus.nextMessage('JOBS', next, subject);
      if (found === null) return last;
      next = found.sequence + 1;
      if (this.#isSigned(found)) last = found;
    }
  }
}
