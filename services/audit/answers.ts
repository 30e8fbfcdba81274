/** Requests and their replies: an error is a reply too, and nothing is left half answered when the service stops. */
import { messageOf, OperationalError } from '../platform/errors.ts';
import type { Logger } from '../platform/log.ts';
import type { Bus, Reply, Request, Stop } from '../platform/nats/bus.ts';
import { headerNames } from '../platform/topology.ts';
import { RequestFault } from './request-fault.ts';

export class Answers {
  readonly #bus: Pick<Bus, 'serve'>;
  readonly #log: Logger;
  readonly #queue: string;
  readonly #stops: Stop[] = [];
  readonly #busy = new Set<Promise<Reply>>();

  /** Of all that serve in one `queue`, one gets each request. */
  constructor({ bus, log }: { bus: Pick<Bus, 'serve'>; log: Logger }, queue = 'audit') {
    this.#bus = bus;
    this.#log = log;
    this.#queue = queue;
  }

  serve(filter: string, handler: (request: Request) => Promise<Reply>): void {
    const stop = this.#bus.serve(filter, this.#queue, (request) => {
      const reply = this.#answer(handler, request).finally(() => this.#busy.delete(reply));
      this.#busy.add(reply);
      return reply;
    });
    this.#stops.push(stop);
  }

  async #answer(handler: (request: Request) => Promise<Reply>, request: Request): Promise<Reply> {
    try {
      return await handler(request);
    } catch (error) {
      const fault = asFault(error);
      if (fault.code === 'INTERNAL')
        this.#log.error({ subject: request.subject, error: messageOf(error) }, 'request failed');
      return { data: Buffer.from(fault.message), headers: { [headerNames.error]: fault.code } };
    }
  }

  /** Takes no more requests and resolves when those under way are answered. */
  async stop(): Promise<void> {
    for (const stop of this.#stops) stop();
    await Promise.all(this.#busy);
  }
}

function asFault(error: unknown): RequestFault {
  if (error instanceof RequestFault) return error;
  if (error instanceof OperationalError)
    return new RequestFault('UNAVAILABLE', `${error.message}; ask again later`);
  return new RequestFault('INTERNAL', 'the audit service failed on this request; its log says how');
}
