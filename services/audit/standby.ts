/** One audit service writes; another one stands by, and goes on where the first ends. */
import { OperationalError } from '../platform/errors.ts';
import type { HealthCheck } from '../platform/health.ts';
import type { Logger } from '../platform/log.ts';
import type { RunningService } from '../platform/service.ts';

/** How often the one that stands by asks for the place. */
const pauseMs = 500;

export interface StandbyParts<T> {
  readonly claim: () => Promise<T | null>;
  readonly serve: (claimed: T) => Promise<RunningService>;
  /** True where what cannot be reached now may be later: a database elsewhere, not the disk of this machine. */
  readonly isPatient: boolean;
  /** Answers whoever asks while the ledger cannot be reached; not while another one has it, which answers. */
  readonly whileAway: (reason: () => string) => { stop: () => Promise<void> };
  readonly log: Logger;
}

/**
 * Serves as soon as `claim` gives the place of the writer, now or later. `serve` gets what was claimed and closes it.
 * The service that is returned is ready when it serves.
 */
export async function serveWhenClaimed<T>(parts: StandbyParts<T>): Promise<RunningService> {
  const standby = new Standby(parts);
  await standby.begin();
  return standby;
}

class Standby<T> implements RunningService {
  readonly failed: Promise<never>;
  readonly checks: readonly HealthCheck[] = [() => this.#reasons()];
  readonly #bug = Promise.withResolvers<never>();
  readonly #stopped = new AbortController();
  readonly #parts: StandbyParts<T>;
  /** Null while it serves. */
  #reason: string | null = null;
  #running: RunningService | null = null;
  #away: ReturnType<StandbyParts<T>['whileAway']> | null = null;
  #ended: Promise<void> = Promise.resolve();

  constructor(parts: StandbyParts<T>) {
    this.#parts = parts;
    this.failed = this.#bug.promise;
    this.failed.catch(() => undefined);
  }

  #reasons(): string | null {
    return this.#reason ?? this.#running?.checks?.map((check) => check()).find((one) => one !== null) ?? null;
  }

  /** Serves at once if it may; else waits for that in the background. */
  async begin(): Promise<void> {
    if (await this.#served()) return;
    this.#ended = this.#wait().catch((error: unknown) => this.#bug.reject(error));
  }

  async #wait(): Promise<void> {
    do await this.#pause();
    while (!this.#stopped.signal.aborted && !(await this.#served()));
  }

  async #served(): Promise<boolean> {
    const claimed = await this.#tried();
    if (claimed === null) return false;
    this.#running = await this.#parts.serve(claimed);
    this.#running.failed.catch((error: unknown) => this.#bug.reject(error));
    this.#say(null);
    await this.#noLongerAway();
    return true;
  }

  async #tried(): Promise<T | null> {
    try {
      const claimed = await this.#parts.claim();
      if (claimed !== null) return claimed;
      this.#say('it stands by: another audit service writes this ledger');
      await this.#noLongerAway();
      return null;
    } catch (error) {
      if (!(error instanceof OperationalError) || !this.#parts.isPatient) throw error;
      this.#say(error.message);
      this.#away ??= this.#parts.whileAway(() => this.#reason ?? 'the audit service starts');
      return null;
    }
  }

  async #noLongerAway(): Promise<void> {
    const away = this.#away;
    this.#away = null;
    await away?.stop();
  }

  #say(reason: string | null): void {
    if (reason === this.#reason) return;
    this.#reason = reason;
    if (reason === null) this.#parts.log.info('has the ledger now');
    else this.#parts.log.warn({ reason }, 'waits for the ledger');
  }

  #pause(): Promise<void> {
    return new Promise((done) => {
      const end = () => {
        clearTimeout(timer);
        this.#stopped.signal.removeEventListener('abort', end);
        done();
      };
      const timer = setTimeout(end, pauseMs);
      this.#stopped.signal.addEventListener('abort', end);
    });
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#ended;
    await this.#noLongerAway();
    await this.#running?.stop();
  }
}
