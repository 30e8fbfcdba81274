/** A durable consumer that is pulled from. */
import type { Consumer } from 'nats';
import type { Delivery } from './messages.ts';
import { toDelivery } from './messages.ts';

export class PullConsumer {
  readonly #consumer: Consumer;
  readonly #stream: string;

  constructor(consumer: Consumer, stream: string) {
    this.#consumer = consumer;
    this.#stream = stream;
  }

  /**
   * Up to `max` deliveries, as they come, for at most `waitMs` (1 s or more). Never ask for more than can be handled
   * at once: a message that waits here burns its ack-wait.
   */
  async pull(
    max: number,
    waitMs: number,
  ): Promise<{ deliveries: AsyncIterable<Delivery>; stop: () => void }> {
    const messages = await this.#consumer.fetch({ max_messages: max, expires: waitMs });
    const stream = this.#stream;
    async function* deliveries(): AsyncIterable<Delivery> {
      for await (const message of messages) yield toDelivery(message, stream);
    }
    return { deliveries: deliveries(), stop: () => messages.stop() };
  }
}
