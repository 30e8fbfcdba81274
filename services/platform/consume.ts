/**
 * The one consume loop. It pulls no more than it can handle, keeps a message alive while its handler works, and is
 * alone in settling messages:
 *
 *   handler returns          ack
 *   OperationalError         delivered again after a delay that doubles with each delivery
 *   PoisonError              dead letter, then terminated
 *   too many deliveries      dead letter, then terminated
 *   anything else            a bug: the loop fails, the process ends, the message stays unacked
 */
import { messageOf, OperationalError, PoisonError } from './errors.ts';
import type { Logger } from './log.ts';
import type { Bus, Delivery, PullConsumer } from './nats/bus.ts';
import type { ConsumerDefinition } from './topology.ts';
import { ackWaitMs } from './topology.ts';

export type Handler = (delivery: Delivery) => Promise<void>;
/** Keeps a message that will not be handled. Must have published before it returns. */
export type DeadLetter = (delivery: Delivery, reason: string, detail: string) => Promise<void>;

export interface SettleOptions {
  readonly handler: Handler;
  readonly deadLetter: DeadLetter;
  readonly log: Logger;
  /** A message delivered more often than this is a dead letter; Infinity where the handler itself ends the job. */
  readonly maxDeliveries: number;
  /** False spares the server's word that it has an ack: one that is lost leads to a redelivery, as a late one does. */
  readonly confirmsAcks?: boolean;
  /** Ends the job of a message that was delivered too often, before that becomes a dead letter. */
  readonly exhausted?: (delivery: Delivery, detail: string) => Promise<void>;
}

export interface ConsumeOptions extends SettleOptions {
  readonly bus: Bus;
  readonly consumer: ConsumerDefinition;
  /** Messages handled at one time. */
  readonly slots: number;
  /**
   * Messages of one pull; the next one is made when so many slots are free. For who takes thousands a second: a pull costs
   * as much as many messages. Whatever is free unless set.
   */
  readonly batch?: number;
  /** How many more messages may be taken now, where that depends on others. */
  readonly room?: () => Promise<number>;
}

export interface Loop {
  /** Takes no more messages and resolves when the handlers under way have ended. */
  stop(): Promise<void>;
  /** Rejects when the loop hit a bug. Never resolves otherwise. */
  readonly failed: Promise<never>;
}

const keepAliveMs = ackWaitMs / 6;
const pullWaitMs = 5_000;
const retryPullMs = 1_000;
const noRoomMs = 250;
const longestRetryMs = 60_000;

export function consume(options: ConsumeOptions): Loop {
  const loop = new ConsumeLoop(options);
  void loop.run();
  return loop;
}

class ConsumeLoop implements Loop {
  readonly failed: Promise<never>;
  readonly #options: ConsumeOptions;
  #busy = 0;
  readonly #ended = Promise.withResolvers<void>();
  readonly #bug = Promise.withResolvers<never>();
  #stopping = false;
  #stopPull: () => void = () => undefined;
  #onFree: () => void = () => undefined;
  #onIdle: () => void = () => undefined;

  constructor(options: ConsumeOptions) {
    this.#options = options;
    this.failed = this.#bug.promise;
  }

  async run(): Promise<void> {
    let consumer: PullConsumer | null = null;
    while (!this.#stopping) {
      if (this.#free < this.#leastFree) {
        await new Promise<void>((resolve) => {
          this.#onFree = resolve;
        });
        continue;
      }
      try {
        const { stream, durable } = this.#options.consumer;
        consumer ??= await this.#options.bus.consumer(stream, durable);
        const most = Math.min(this.#options.batch ?? this.#free, await this.#room());
        if (most > 0) await this.#pullOnce(consumer, most);
        else await this.#pause(noRoomMs);
      } catch (error) {
        // The consumer may have been deleted or the server be away: bind again, for as long as it takes.
        consumer = null;
        this.#options.log.warn(
          { consumer: this.#options.consumer.durable, error: messageOf(error) },
          'pull failed',
        );
        await this.#pause(retryPullMs);
      }
    }
    this.#ended.resolve();
  }

  get #free(): number {
    return this.#options.slots - this.#busy;
  }

  get #leastFree(): number {
    return this.#options.batch ?? 1;
  }

  #room(): Promise<number> {
    return this.#options.room?.() ?? Promise.resolve(Number.POSITIVE_INFINITY);
  }

  async #pullOnce(consumer: PullConsumer, most: number): Promise<void> {
    const { ended, stop } = await consumer.pull(most, pullWaitMs, (delivery) => void this.#work(delivery));
    this.#stopPull = stop;
    if (this.#stopping) stop();
    await ended;
  }

  async #work(delivery: Delivery): Promise<void> {
    this.#busy++;
    try {
      await settle(this.#options, delivery);
    } catch (bug) {
      this.#bug.reject(bug);
    }
    this.#busy--;
    if (this.#free >= this.#leastFree) this.#onFree();
    if (this.#busy === 0) this.#onIdle();
  }

  #pause(ms: number): Promise<void> {
    return new Promise((done) => {
      const timer = setTimeout(done, ms);
      this.#stopPull = () => {
        clearTimeout(timer);
        done();
      };
    });
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    this.#stopPull();
    await this.#ended.promise;
    if (this.#busy > 0)
      await new Promise<void>((resolve) => {
        this.#onIdle = resolve;
      });
  }
}

/**
 * Tells the server of the messages that are under way that somebody works on them. One timer for the process: one for
 * each of thousands a second would cost more than looking through them.
 */
class KeepAlive {
  readonly #underWay = new Set<Delivery>();
  /** Under way when it was last looked: a period is a sixth of the time in which a message must be settled. */
  readonly #old = new WeakSet<Delivery>();
  #timer: NodeJS.Timeout | undefined;

  add(delivery: Delivery): void {
    this.#underWay.add(delivery);
    this.#timer ??= setInterval(() => this.#tell(), keepAliveMs);
  }

  remove(delivery: Delivery): void {
    this.#underWay.delete(delivery);
    if (this.#underWay.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #tell(): void {
    for (const delivery of this.#underWay)
      if (this.#old.has(delivery)) delivery.settle.working();
      else this.#old.add(delivery);
  }
}

const keepAlive = new KeepAlive();

/** Handles one delivery, keeps it alive meanwhile, and settles it. Throws only what is a bug. */
export async function settle(options: SettleOptions, delivery: Delivery): Promise<void> {
  keepAlive.add(delivery);
  try {
    if (delivery.deliveryCount > options.maxDeliveries) await giveUp(options, delivery);
    else {
      await options.handler(delivery);
      // No promise more than needed: this is done thousands of times a second.
      if (options.confirmsAcks === false) ackUnconfirmed(options, delivery);
      else await ack(options, delivery);
    }
  } catch (error) {
    await settleFailed(options, delivery, error);
  } finally {
    keepAlive.remove(delivery);
  }
}

async function giveUp(options: SettleOptions, delivery: Delivery): Promise<void> {
  const detail = `handled ${options.maxDeliveries} times without an end`;
  await options.exhausted?.(delivery, detail);
  await bury(options, delivery, 'DELIVERIES_EXHAUSTED', detail);
}

async function settleFailed(options: SettleOptions, delivery: Delivery, error: unknown): Promise<void> {
  try {
    if (!(error instanceof PoisonError)) throw error;
    await bury(options, delivery, error.code, error.message);
  } catch (failure) {
    if (!(failure instanceof OperationalError)) throw failure;
    const delayMs = Math.min(longestRetryMs, failure.retryMs * 2 ** Math.min(10, delivery.deliveryCount - 1));
    options.log.warn(
      { subject: delivery.subject, code: failure.code, error: failure.message, delayMs },
      'will retry',
    );
    delivery.settle.retry(delayMs);
  }
}

async function bury(
  options: SettleOptions,
  delivery: Delivery,
  reason: string,
  detail: string,
): Promise<void> {
  options.log.error({ subject: delivery.subject, reason, detail }, 'dead letter');
  await options.deadLetter(delivery, reason, detail);
  delivery.settle.terminate();
}

/** An ack that is not confirmed leads to a redelivery, which every handler must bear anyway. */
async function ack(options: SettleOptions, delivery: Delivery): Promise<void> {
  try {
    await delivery.settle.ack();
  } catch (error) {
    notConfirmed(options, delivery, error);
  }
}

function ackUnconfirmed(options: SettleOptions, delivery: Delivery): void {
  try {
    delivery.settle.ackUnconfirmed();
  } catch (error) {
    notConfirmed(options, delivery, error);
  }
}

const notConfirmed = (options: SettleOptions, { subject }: Delivery, error: unknown): void =>
  options.log.warn({ subject, error: messageOf(error) }, 'ack not confirmed');
