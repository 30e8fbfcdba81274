/**
 * Ends jobs that wait, when the trust store takes back what they were admitted under. Without this they would be
 * refused when an executor comes to them; with it they are refused soon, and while no executor has room.
 */
import type { JobVerified } from '../../schemas/generated/events.ts';
import { toMicros } from '../platform/clock.ts';
import { messageOf } from '../platform/errors.ts';
import { asCause, outgoing, readServiceEvent } from '../platform/events.ts';
import type { JobStates } from '../platform/job-state.ts';
import { endJob } from '../platform/job-state.ts';
import type { StreamMessage } from '../platform/nats/bus.ts';
import type { ServiceContext } from '../platform/service.ts';
import { eventId, headerNames, kvKey, subjects } from '../platform/topology.ts';
import type { Rejection, TrustStore } from '../trust/index.ts';
import { findRevocation } from '../trust/index.ts';

export interface SweepParts {
  readonly context: ServiceContext;
  readonly states: JobStates;
}

/** Sweeps at each call, one after the other; calls that come while one waits are answered by that one. */
export class RevocationSweep {
  readonly #parts: SweepParts;
  #next: TrustStore | null = null;
  #running: Promise<void> = Promise.resolve();

  constructor(parts: SweepParts) {
    this.#parts = parts;
  }

  /** The store that has come into force. */
  onStore(store: TrustStore): void {
    const isWaiting = this.#next !== null;
    this.#next = store;
    if (!isWaiting) this.#running = this.#running.then(() => this.#sweep());
  }

  async stop(): Promise<void> {
    await this.#running;
  }

  async #sweep(): Promise<void> {
    const store = this.#next;
    this.#next = null;
    if (store === null) return;
    try {
      await sweep(this.#parts, store);
    } catch (error) {
      // The bus is away, say. Executors refuse what was not reached when they come to it.
      this.#parts.context.log.warn({ error: messageOf(error) }, 'could not sweep the jobs that wait');
    }
  }
}

/** JOBS holds the events of jobs that have not ended, so this reads no more than what waits or runs. */
async function sweep(parts: SweepParts, store: TrustStore): Promise<void> {
  const { bus, log } = parts.context;
  for (let next = 1; ; ) {
    const message = await bus.nextMessage('JOBS', next, 'job.verified.>');
    if (message === null) return;
    next = message.sequence + 1;
    try {
      await judge(parts, message, store);
    } catch (error) {
      // One that cannot be read or changed keeps no other from being ended.
      log.warn({ subject: message.subject, error: messageOf(error) }, 'could not sweep a job');
    }
  }
}

async function judge(parts: SweepParts, message: StreamMessage, store: TrustStore): Promise<void> {
  const job = readServiceEvent(parts.context.bus, 'JobVerified', message);
  const revocation = findRevocation({ pluginSha256: job.plugin.sha256, keyIds: job.keyIds }, store);
  if (revocation === null || !(await endIfWaiting(parts, message, job, revocation))) return;
  parts.context.log.warn({ job: kvKey(job), detail: revocation.detail }, 'a job that waited is revoked');
}

/** A job that an executor has claimed is that executor's to end. */
async function endIfWaiting(
  parts: SweepParts,
  message: StreamMessage,
  job: JobVerified,
  { reason, detail }: Rejection,
): Promise<boolean> {
  const { bus, clock } = parts.context;
  const cause = asCause(message);
  const event = outgoing(
    'JobRejected',
    {
      jobId: job.jobId,
      tenant: job.tenant,
      rejectedAt: toMicros(clock.nowMs()),
      stage: 'verifier',
      reason,
      detail,
      pluginName: job.plugin.name,
      pluginSha256: job.plugin.sha256,
    },
    {
      subject: subjects.job('rejected', job),
      id: eventId('verifier', 'revoked', cause, job),
      cause,
      traceparent: message.headers[headerNames.traceparent] ?? null,
    },
  );
  const ended = await endJob(bus, parts.states, job, event, (entry) => entry.state === 'open');
  return ended?.ours ?? false;
}
