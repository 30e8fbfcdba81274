/** A durable consumer that is pulled from. */
import type { ConsumeCallback, Consumer, FetchOptions, JsMsg, NatsConnection } from 'nats';
import type { Delivery } from './messages.ts';
import { toDelivery } from './messages.ts';

export class PullConsumer {
  readonly #consumer: Consumer;
  readonly #stream: string;
  readonly #connection: NatsConnection;

  constructor(consumer: Consumer, stream: string, connection: NatsConnection) {
    this.#consumer = consumer;
    this.#stream = stream;
    this.#connection = connection;
  }

  /**
   * Hands over up to `max` deliveries, as they come, for at most `waitMs` (1 s or more). Never ask for more than can be
   * handled at once: a message that waits here burns its ack-wait. `ended` rejects when the consumer cannot be pulled from.
   */
  async pull(max: number, waitMs: number, onDelivery: (delivery: Delivery) => void): Promise<Pull> {
    const callback = (message: JsMsg) => onDelivery(toDelivery(message, this.#stream, this.#connection));
    // An iterator would cost several promises for each message. `fetch` takes what its iterator class takes.
    const options: FetchOptions & ConsumeCallback = { max_messages: max, expires: waitMs, callback };
    const messages = await this.#consumer.fetch(options);
    const ended = messages.closed().then((error) => {
      if (error instanceof Error) throw error;
    });
    return { ended, stop: () => messages.stop() };
  }
}

export interface Pull {
  /** Resolves when all deliveries have been handed over. */
  readonly ended: Promise<void>;
  stop(): void;
}
