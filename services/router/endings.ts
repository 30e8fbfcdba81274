/**
 * What becomes of ended jobs. Whoever ends a job writes its terminal event into KV first and publishes it then; should
 * it die in between, and no message of the job be left that brings another service here, the event is said by us. When
 * the ledger has it, which shows by the submission having left the bus, the entry is made small.
 */
import type { Clock } from '../platform/clock.ts';
import type { JobEntry, JobSnapshot, JobStates } from '../platform/job-state.ts';
import { republish, settledEntry, terminalOf } from '../platform/job-state.ts';
import type { Logger } from '../platform/log.ts';
import type { Bus, StreamState } from '../platform/nats/bus.ts';
import type { JobRef } from '../platform/topology.ts';
import { kvKey } from '../platform/topology.ts';

const firstLookMs = 3_000;
const longestPauseMs = 60_000;
/** The ender itself, and the redelivery of its message, come first. */
const silenceMs = 10_000;
/** Looks at one time; the others have their turn at the next. */
const mostLooks = 100;

interface Ending {
  readonly job: JobRef;
  readonly submissionSequence: number;
  readonly sinceMs: number;
  pauseMs: number;
  nextLookMs: number;
}

export interface EndingsParts {
  readonly bus: Pick<Bus, 'streamState' | 'messageAt' | 'nextMessage' | 'publish' | 'identity'>;
  readonly states: JobStates;
  readonly clock: Clock;
  readonly log: Logger;
}

export class Endings {
  readonly #parts: EndingsParts;
  readonly #open = new Map<string, Ending>();

  constructor(parts: EndingsParts) {
    this.#parts = parts;
  }

  /** Told of each entry that has ended. */
  see(snapshot: JobSnapshot): void {
    const { entry } = snapshot;
    const key = kvKey(entry);
    if (terminalOf(entry) === null) this.forget(key);
    else if (!this.#open.has(key)) this.#add(key, entry);
  }

  #add(key: string, entry: JobEntry): void {
    const now = this.#parts.clock.monotonicMs();
    const { tenant, jobId, submissionSequence } = entry;
    this.#open.set(key, {
      ...{ job: { tenant, jobId }, submissionSequence, sinceMs: now },
      ...{ pauseMs: firstLookMs, nextLookMs: now + firstLookMs },
    });
  }

  forget(key: string): void {
    this.#open.delete(key);
  }

  forgetAll(): void {
    this.#open.clear();
  }

  /** Throws OperationalError when the bus does not answer. */
  async tick(): Promise<void> {
    const now = this.#parts.clock.monotonicMs();
    const due = [...this.#open.values()].filter(({ nextLookMs }) => nextLookMs <= now);
    if (due.length === 0) return;
    const submissions = await this.#parts.bus.streamState('SUBMISSIONS');
    for (const ending of due.slice(0, mostLooks)) {
      if (await this.#isRecorded(ending, submissions)) await this.#settle(ending);
      else await this.#wait(ending, now);
    }
  }

  /** Audit takes a submission off the bus after it has committed the terminal event. */
  async #isRecorded({ submissionSequence }: Ending, submissions: StreamState): Promise<boolean> {
    if (submissions.messages === 0 || submissionSequence < submissions.firstSequence) return true;
    return (await this.#parts.bus.messageAt('SUBMISSIONS', submissionSequence)) === null;
  }

  async #settle({ job }: Ending): Promise<void> {
    await this.#parts.states.change(job, (entry) =>
      entry.state === 'ended' && terminalOf(entry) !== null ? settledEntry(entry) : null,
    );
    this.forget(kvKey(job));
  }

  async #wait(ending: Ending, now: number): Promise<void> {
    ending.pauseMs = Math.min(longestPauseMs, 2 * ending.pauseMs);
    ending.nextLookMs = now + ending.pauseMs;
    if (now - ending.sinceMs < silenceMs) return;
    const { bus, states, log } = this.#parts;
    const entry = (await states.read(ending.job))?.entry;
    const subject = entry?.terminal?.subject;
    if (entry === undefined || subject === undefined) return;
    if ((await bus.nextMessage('JOBS', 1, subject)) !== null) return;
    // Not on the bus although not in the ledger; or audit was just at it, and records a repetition.
    await republish(bus, entry);
    log.warn({ job: kvKey(ending.job), subject }, 'a terminal event was missing on the bus: said again');
  }
}
