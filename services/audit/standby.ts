/** One audit service writes; another one stands by, and goes on where the first ends. */
import { messageOf, OperationalError } from '../platform/errors.ts';
import type { HealthCheck } from '../platform/health.ts';
import type { Logger } from '../platform/log.ts';
import type { RunningService } from '../platform/service.ts';

/** How often the one that stands by asks for the place. */
const pauseMs = 500;

/**
 * Serves as soon as `claim` gives the place of the writer, now or later. `serve` gets what was claimed and closes it.
 * The service that is returned is ready when it serves.
 */
export async function serveWhenClaimed<T>(
  claim: () => Promise<T | null>,
  serve: (claimed: T) => Promise<RunningService>,
  log: Logger,
): Promise<RunningService> {
  const claimed = await claim();
  if (claimed !== null) return serve(claimed);
  log.info('stands by: another audit service writes this ledger');
  return new Standby(claim, serve, log);
}

class Standby<T> implements RunningService {
  readonly failed: Promise<never>;
  readonly checks: readonly HealthCheck[] = [() => this.#reason()];
  readonly #log: Logger;
  readonly #bug = Promise.withResolvers<never>();
  readonly #stopped = new AbortController();
  readonly #ended: Promise<void>;
  #running: RunningService | null = null;

  constructor(claim: () => Promise<T | null>, serve: (claimed: T) => Promise<RunningService>, log: Logger) {
    this.#log = log;
    this.failed = this.#bug.promise;
    this.failed.catch(() => undefined);
    this.#ended = this.#wait(claim, serve).catch((error: unknown) => this.#bug.reject(error));
  }

  #reason(): string | null {
    if (this.#running === null) return 'it stands by: another audit service writes this ledger';
    return this.#running.checks?.map((check) => check()).find((reason) => reason !== null) ?? null;
  }

  async #wait(claim: () => Promise<T | null>, serve: (claimed: T) => Promise<RunningService>): Promise<void> {
    while (!this.#stopped.signal.aborted) {
      await this.#pause();
      const claimed = this.#stopped.signal.aborted ? null : await this.#tried(claim);
      if (claimed === null) continue;
      this.#log.info('takes over: the other audit service has ended');
      this.#running = await serve(claimed);
      this.#running.failed.catch((error: unknown) => this.#bug.reject(error));
      return;
    }
  }

  async #tried(claim: () => Promise<T | null>): Promise<T | null> {
    try {
      return await claim();
    } catch (error) {
      if (!(error instanceof OperationalError)) throw error;
      this.#log.warn({ code: error.code, error: messageOf(error) }, 'cannot ask for the ledger yet');
      return null;
    }
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
    await this.#running?.stop();
  }
}
