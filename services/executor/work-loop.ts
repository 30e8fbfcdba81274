/**
 * Pulls work while there is room for it, from all routes in turn. One message at a time: what is pulled runs at once,
 * the rest waits on the bus, where other executors can have it.
 */
import type { DeadLetter, Handler } from '../platform/consume.ts';
import { settle } from '../platform/consume.ts';
import { messageOf, OperationalError } from '../platform/errors.ts';
import type { Logger } from '../platform/log.ts';
import type { Bus, Delivery } from '../platform/nats/bus.ts';
import type { Route } from '../platform/topology.ts';
import { subjects, workConsumer } from '../platform/topology.ts';

export interface WorkLoopOptions {
  readonly bus: Bus;
  readonly log: Logger;
  readonly routes: readonly Route[];
  readonly slots: number;
  /** Besides a free slot: whether there is memory to give. */
  readonly hasRoom: () => boolean;
  readonly handler: Handler;
  readonly deadLetter: DeadLetter;
}

/** Without a wake-up, which may be lost, work is looked for this often. */
const pollMs = 1_000;
const stream = 'JOBS';

export class WorkLoop {
  /** Rejects when a handler hit a bug. */
  readonly failed: Promise<never>;
  readonly #options: WorkLoopOptions;
  readonly #bug = Promise.withResolvers<never>();
  readonly #ended = Promise.withResolvers<void>();
  readonly #busy = new Set<Promise<void>>();
  readonly #unlisten: (() => void)[];
  #wakeUp = Promise.withResolvers<void>();
  #next = 0;
  #stopping = false;

  constructor(options: WorkLoopOptions) {
    this.#options = options;
    this.failed = this.#bug.promise;
    this.failed.catch(() => undefined);
    this.#unlisten = options.routes.map((route) =>
      options.bus.listen(subjects.wake(route), () => this.#wake()),
    );
    void this.#run();
  }

  /** Jobs that are under way now. */
  get busy(): number {
    return this.#busy.size;
  }

  /** Takes no more work; resolves when it has stopped pulling. What it has taken goes on. */
  async stop(): Promise<void> {
    this.#stopping = true;
    for (const unlisten of this.#unlisten) unlisten();
    this.#wake();
    await this.#ended.promise;
  }

  /** Resolves when everything that was taken is settled. */
  async idle(): Promise<void> {
    await Promise.all(this.#busy);
  }

  async #run(): Promise<void> {
    while (!this.#stopping) {
      const woken = this.#wakeUp.promise;
      if (await this.#pullRound()) continue;
      await this.#pause(woken);
    }
    this.#ended.resolve();
  }

  get #hasRoom(): boolean {
    return !this.#stopping && this.#busy.size < this.#options.slots && this.#options.hasRoom();
  }

  /** Asks each route once, the one after the last served first. Says whether there was work. */
  async #pullRound(): Promise<boolean> {
    const { routes, log } = this.#options;
    let took = false;
    try {
      for (let asked = 0; asked < routes.length && this.#hasRoom; asked++) {
        const route = routes[this.#next % routes.length];
        this.#next += 1;
        if (route !== undefined && (await this.#pullOne(route))) took = true;
      }
    } catch (error) {
      if (!(error instanceof OperationalError)) this.#bug.reject(error);
      log.warn({ error: messageOf(error) }, 'pull failed');
      return false;
    }
    return took;
  }

  async #pullOne(route: Route): Promise<boolean> {
    const delivery = await this.#options.bus.pullNow(stream, workConsumer(route));
    if (delivery === null) return false;
    this.#start(delivery);
    return true;
  }

  #start(delivery: Delivery): void {
    const { handler, deadLetter, log } = this.#options;
    const work = settle({ handler, deadLetter, log, maxDeliveries: Number.POSITIVE_INFINITY }, delivery)
      .catch((bug: unknown) => this.#bug.reject(bug))
      .finally(() => {
        this.#busy.delete(work);
        this.#wake();
      });
    this.#busy.add(work);
  }

  async #pause(woken: Promise<void>): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, pollMs);
    await Promise.race([woken, promise]);
    clearTimeout(timer);
  }

  #wake(): void {
    this.#wakeUp.resolve();
    this.#wakeUp = Promise.withResolvers();
  }
}
