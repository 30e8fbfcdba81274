/** Work in the background that is done when somebody says so, and again later when it could not be done. */
import { messageOf, OperationalError } from '../platform/errors.ts';
import type { Logger } from '../platform/log.ts';

/** Does what there is to do. Returns after how long to look again by itself, milliseconds; null is not before a wake. */
export type Turn = () => Promise<number | null>;

const retryMs = 1000;

export class Worker {
  /** Rejects when a turn hit what trying again cannot mend. */
  readonly failed: Promise<never>;
  readonly #name: string;
  readonly #turn: Turn;
  readonly #log: Logger;
  readonly #bug = Promise.withResolvers<never>();
  #running: Promise<void> | null = null;
  #again = false;
  #stopped = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(name: string, turn: Turn, log: Logger) {
    this.#name = name;
    this.#turn = turn;
    this.#log = log;
    this.failed = this.#bug.promise;
    this.failed.catch(() => undefined);
  }

  get stopped(): boolean {
    return this.#stopped;
  }

  wake(): void {
    if (this.#stopped) return;
    clearTimeout(this.#timer);
    if (this.#running !== null) {
      this.#again = true;
      return;
    }
    this.#running = this.#run().finally(() => {
      this.#running = null;
    });
  }

  async #run(): Promise<void> {
    let waitMs: number | null;
    do {
      this.#again = false;
      waitMs = await this.#guardedTurn();
    } while (this.#again && !this.#stopped);
    if (waitMs !== null && !this.#stopped) this.#timer = setTimeout(() => this.wake(), waitMs);
  }

  async #guardedTurn(): Promise<number | null> {
    try {
      return await this.#turn();
    } catch (error) {
      if (error instanceof OperationalError) {
        this.#log.warn({ work: this.#name, code: error.code, error: error.message }, 'will try again');
        return retryMs;
      }
      this.#log.error({ work: this.#name, error: messageOf(error) }, 'gives up');
      this.#bug.reject(error);
      this.#stopped = true;
      return null;
    }
  }

  /** Resolves when the turn under way has ended; there is no other after it. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await this.#running;
  }
}

/** Calls to the bus that may throw anything: what goes wrong there can pass. */
export async function reaching<T>(what: string, action: () => Promise<T>): Promise<T> {
  try {
    return await action();
  } catch (cause) {
    if (cause instanceof OperationalError) throw cause;
    throw new OperationalError('BUS_UNAVAILABLE', `${what}: ${messageOf(cause)}`, { cause });
  }
}
