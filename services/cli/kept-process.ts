/**
 * A process that is started again when it dies: at once the first time, then after delays that double while it does not
 * stay up, and no more when it has failed too often in a row.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { messageOf } from '../platform/errors.ts';
import type { Exit } from '../platform/process.ts';

/** A process that has started and is ready. */
export interface Started {
  readonly pid: number;
  readonly exited: Promise<Exit>;
  stop(): Promise<void>;
  /** While it stops: what it still waits for is ended. */
  hurry?(): void;
}

export interface KeepOptions {
  readonly name: string;
  /** Resolves when the process is ready. */
  readonly start: () => Promise<Started>;
  /** Told when the process dies, is ready again, or is given up. */
  readonly onEvent: (text: string) => void;
  readonly firstDelayMs?: number;
}

/** Up for so long, the process has recovered, and its failures count no more. */
const steadyMs = 10_000;
const longestDelayMs = 10_000;
const mostFailures = 10;

export class KeptProcess {
  readonly name: string;
  /** Resolves with a sentence when the process does not stay up. */
  readonly givenUp: Promise<string>;
  readonly #options: KeepOptions;
  readonly #giveUp = Promise.withResolvers<string>();
  readonly #stopping = new AbortController();
  #current: Started | null = null;
  #starting: Promise<void> = Promise.resolve();
  #kept: Promise<void> = Promise.resolve();

  constructor(options: KeepOptions) {
    this.name = options.name;
    this.#options = options;
    this.givenUp = this.#giveUp.promise;
  }

  /** 0 while it does not run. */
  get pid(): number {
    return this.#current?.pid ?? 0;
  }

  /** Starts the process; from then on it is kept running. Rejects when this first start fails. */
  start(): Promise<void> {
    const starting = this.#options.start().then(async (first) => {
      this.#current = first;
      if (this.#stopping.signal.aborted) await first.stop();
      else this.#kept = this.#keep(first);
    });
    this.#starting = starting.catch(() => undefined);
    return starting;
  }

  /** Ends the process, which is then started again as when it dies. */
  async restart(): Promise<void> {
    await this.#current?.stop();
  }

  /** Asks a process that is stopping to be quick about it. */
  hurry(): void {
    this.#current?.hurry?.();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#starting;
    await this.#current?.stop();
    await this.#kept;
  }

  async #keep(first: Started): Promise<void> {
    const { name, onEvent } = this.#options;
    let failures = 0;
    for (let running: Started | null = first; !this.#stopping.signal.aborted; ) {
      const readyAtMs = performance.now();
      const how = running === null ? 'did not start' : `ended (${describeExit(await running.exited)})`;
      this.#current = null;
      if (this.#stopping.signal.aborted) return;
      failures = running !== null && performance.now() - readyAtMs > steadyMs ? 1 : failures + 1;
      if (failures > mostFailures) {
        this.#giveUp.resolve(`${name} ${how}, for the ${mostFailures}th time in a row: see its log`);
        return;
      }
      onEvent(`${name} ${how}; starting it again`);
      running = await this.#startAgain(failures);
    }
  }

  async #startAgain(failures: number): Promise<Started | null> {
    const { name, start, onEvent, firstDelayMs = 100 } = this.#options;
    const delayMs = Math.min(longestDelayMs, firstDelayMs * 2 ** (failures - 1));
    const { signal } = this.#stopping;
    await delay(delayMs, undefined, { signal }).catch(() => undefined);
    if (signal.aborted) return null;
    try {
      const started = await start();
      this.#current = started;
      if (signal.aborted) await started.stop();
      else onEvent(`${name} is ready again`);
      return started;
    } catch (error) {
      onEvent(messageOf(error));
      return null;
    }
  }
}

export const describeExit = (exit: Exit): string =>
  exit.signal === null ? `exit code ${exit.code}` : `${exit.signal}`;
