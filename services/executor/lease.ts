/**
 * An executor's hold on a job: the entry in KV with its own name in it, renewed by compare-and-set. All changes that
 * this executor makes to the entry go through here, one after the other.
 *
 * The hold ends when the entry is somebody else's or has ended, or when it could not be renewed for so long that others
 * may soon think it lost: the margin before that is for killing the job, so that two never run it at one time.
 */
import type { Clock } from '../platform/clock.ts';
import { OperationalError } from '../platform/errors.ts';
import type { JobEntry, JobSnapshot, JobStates } from '../platform/job-state.ts';
import { isStillHeld, startedEntry } from './decide.ts';

const killMarginMs = 5_000;

/** The job is not ours any more. Thrown by changes that came too late. */
export class LeaseLost extends OperationalError {
  constructor(message: string) {
    super('LEASE_LOST', message);
  }
}

export interface LeaseOptions {
  readonly leaseMs: number;
  readonly clock: Clock;
  readonly onCancel: (cancel: NonNullable<JobEntry['cancel']>) => void;
  readonly onLost: (message: string) => void;
}

export class Lease {
  readonly #states: JobStates;
  readonly #options: LeaseOptions;
  readonly #holdMs: number;
  #snapshot: JobSnapshot;
  #renewedAtMs: number;
  #changes: Promise<unknown> = Promise.resolve();
  #beat: NodeJS.Timeout;
  #expiry: NodeJS.Timeout;
  #lost: string | null = null;
  #released = false;

  private constructor(states: JobStates, snapshot: JobSnapshot, claimedAtMs: number, options: LeaseOptions) {
    this.#states = states;
    this.#options = options;
    this.#snapshot = snapshot;
    this.#renewedAtMs = claimedAtMs;
    this.#holdMs = options.leaseMs - killMarginMs;
    // Three chances before a short lease is given up.
    this.#beat = setInterval(() => this.renew(), Math.min(options.leaseMs / 5, this.#holdMs / 3));
    this.#expiry = this.#watchExpiry();
  }

  /** Puts `entry` in the place of `seen`; null when somebody else was first. */
  static async take(
    states: JobStates,
    seen: JobSnapshot,
    entry: JobEntry,
    options: LeaseOptions,
  ): Promise<Lease | null> {
    const claimedAtMs = options.clock.monotonicMs();
    const claimed = await states.replace(seen, entry);
    return claimed === null ? null : new Lease(states, claimed, claimedAtMs, options);
  }

  get entry(): JobEntry {
    return this.#snapshot.entry;
  }

  get revision(): number {
    return this.#snapshot.revision;
  }

  get lost(): boolean {
    return this.#lost !== null;
  }

  /** Counts the attempt up: from here on user code may run. Throws LeaseLost, or a failure of the bus. */
  start(): Promise<void> {
    return this.#change(startedEntry);
  }

  /**
   * Renews now. A failure is no error yet: the expiry decides. A request that a restarting server has swallowed must not
   * hold up the next one, so it is given up early; should it have come through, the next one finds that out.
   */
  renew(): void {
    if (this.#released || this.#lost !== null) return;
    const patienceMs = this.#holdMs / 4;
    this.#change((entry) => ({ ...entry, beat: entry.beat + 1 }), patienceMs).catch(() => undefined);
  }

  /** Renews no more. */
  release(): void {
    this.#released = true;
    clearInterval(this.#beat);
    clearTimeout(this.#expiry);
  }

  #change(next: (entry: JobEntry) => JobEntry, patienceMs?: number): Promise<void> {
    const change = this.#changes.then(() => this.#replace(next, patienceMs));
    this.#changes = change.catch(() => undefined);
    return change;
  }

  async #replace(next: (entry: JobEntry) => JobEntry, patienceMs?: number): Promise<void> {
    for (let tries = 0; tries < 10; tries++) {
      if (this.#lost !== null) throw new LeaseLost(this.#lost);
      if (this.#released) return;
      const sentAtMs = this.#options.clock.monotonicMs();
      const replacing = this.#states.replace(this.#snapshot, next(this.#snapshot.entry));
      const replaced = await answerOf(replacing, patienceMs);
      if (replaced !== null) return this.#renewed(replaced, sentAtMs);
      await this.#lookAgain(patienceMs);
    }
    throw new OperationalError('CONTENTION', `the state of job ${this.entry.jobId} changes too fast`);
  }

  #renewed(snapshot: JobSnapshot, sentAtMs: number): void {
    this.#snapshot = snapshot;
    this.#renewedAtMs = sentAtMs;
    clearTimeout(this.#expiry);
    if (!this.#released) this.#expiry = this.#watchExpiry();
  }

  /** Somebody changed the entry: the router, to cancel; or another executor, which took it. */
  async #lookAgain(patienceMs?: number): Promise<void> {
    const now = await answerOf(this.#states.read(this.entry), patienceMs);
    if (now === null || !isStillHeld(now.entry, this.entry)) {
      const holder =
        now === null ? 'its entry is gone' : `it is ${now.entry.state}, by ${now.entry.executor}`;
      return this.#lose(`the job was taken away: ${holder}`);
    }
    this.#snapshot = now;
    if (now.entry.cancel !== null) this.#options.onCancel(now.entry.cancel);
  }

  #watchExpiry(): NodeJS.Timeout {
    const leftMs = this.#renewedAtMs + this.#holdMs - this.#options.clock.monotonicMs();
    const message = `the lease could not be renewed for ${this.#holdMs} ms`;
    return setTimeout(() => this.#lose(message), Math.max(0, leftMs));
  }

  #lose(message: string): void {
    if (this.#lost !== null || this.#released) return;
    this.#lost = message;
    this.release();
    this.#options.onLost(message);
  }
}

/** Waits no longer than `patienceMs`; what comes later is not looked at. */
async function answerOf<T>(asked: Promise<T>, patienceMs?: number): Promise<T> {
  if (patienceMs === undefined) return asked;
  const tooLate = Promise.withResolvers<never>();
  const error = new OperationalError('KV_SLOW', `no answer within ${patienceMs} ms`);
  const timer = setTimeout(() => tooLate.reject(error), patienceMs);
  return Promise.race([asked, tooLate.promise]).finally(() => clearTimeout(timer));
}
