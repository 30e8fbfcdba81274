/** Takes messages off the bus that are committed and whose job has ended. */
import type { Ledger } from '../ledger/ledger.ts';
import { ledgerStreams } from '../ledger/message-facts.ts';
import type { LedgerWriter } from '../ledger/store.ts';
import type { Logger } from '../platform/log.ts';
import type { Bus } from '../platform/nats/bus.ts';
import { reaching, Worker } from './worker.ts';

/** Deletions on their way at one time. */
const windowMessages = 256;
/** Acks give no notice, so the floors are looked at again and again while something waits for them. */
const floorPollMs = 1000;
/** How often the streams are looked at for what should have left them. */
const sweepMs = 15_000;

export class Retention {
  readonly worker: Worker;
  readonly #bus: Bus;
  readonly #ledger: Ledger;
  readonly #store: LedgerWriter;
  readonly #hasTurn: () => Promise<void>;

  #sweepAtMs = 0;

  constructor(bus: Bus, ledger: Ledger, log: Logger, turn: () => Promise<void>) {
    this.#hasTurn = turn;
    this.#bus = bus;
    this.#ledger = ledger;
    this.#store = ledger.store;
    this.worker = new Worker('retention', () => this.#turn(), log);
  }

  async #turn(): Promise<number | null> {
    // First without the floors: a consumer that cannot be reached must not hold up the rest.
    await this.#deleteReady();
    const waiting = await this.#liftWaits();
    await this.#deleteReady();
    if (performance.now() >= this.#sweepAtMs) {
      for (const stream of ledgerStreams) await this.#sweep(stream);
      this.#sweepAtMs = performance.now() + sweepMs;
    }
    return waiting ? floorPollMs : sweepMs;
  }

  /** A server that is killed brings back messages that it had deleted: usually the oldest in their stream. */
  async #sweep(stream: string): Promise<void> {
    let found = 0;
    let message = await this.#bus.nextMessage(stream, 1, '>');
    // One look in the usual case; through the whole stream when there was something.
    while (message !== null && !this.worker.stopped) {
      if (await this.#ledger.releaseAgain(message)) found++;
      else if (found === 0) return;
      if (found % windowMessages === windowMessages - 1) await this.#deleteReady();
      message = await this.#bus.nextMessage(stream, message.sequence + 1, '>');
    }
    await this.#deleteReady();
  }

  async #deleteReady(): Promise<void> {
    for (;;) {
      await this.#hasTurn();
      const messages = await this.#store.readyDeletions(windowMessages);
      if (messages.length === 0) return;
      const tried = await Promise.allSettled(
        messages.map(({ stream, sequence }) => this.#bus.deleteMessage(stream, sequence)),
      );
      const gone = messages.filter((_, index) => tried[index]?.status === 'fulfilled');
      await this.#store.deletionsDone(gone);
      // One that cannot be deleted must not hold up the others of its window for ever.
      const failure = tried.find((result) => result.status === 'rejected');
      if (failure !== undefined) throw failure.reason;
    }
  }

  /** Returns whether something still waits. */
  async #liftWaits(): Promise<boolean> {
    const awaited = await this.#store.awaitedConsumers();
    for (const durable of awaited) {
      const floor = await reaching(`consumer ${durable}`, () => this.#bus.ackFloor('SUBMISSIONS', durable));
      await this.#store.liftWaits(durable, floor);
    }
    return (await this.#store.awaitedConsumers()).length > 0;
  }
}
