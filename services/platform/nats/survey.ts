/** What stands in the server: streams and consumers, how full and how far. Throws OperationalError READ_FAILED. */
import type { ConsumerInfo, JetStreamManager } from 'nats';
import { messageOf, OperationalError } from '../errors.ts';
import type { Needs } from '../topology.ts';
import { isNotFound } from './failures.ts';
import { replicaFault } from './server-version.ts';

export interface StreamState {
  readonly messages: number;
  readonly bytes: number;
  readonly maxBytes: number;
  /** Of the oldest message that is there; one above the last where there is none. */
  readonly firstSequence: number;
  readonly lastSequence: number;
}

/** Stream sequences, both included. */
export interface UnderWay {
  readonly from: number;
  readonly to: number;
}

const mend = '`sandbus up` and `sandbus topology` make it';

export class Survey {
  readonly #manager: JetStreamManager;

  constructor(manager: JetStreamManager) {
    this.#manager = manager;
  }

  async missing({ streams, consumers }: Needs, serverVersion: string): Promise<string[]> {
    const found = await Promise.all([
      ...streams.map((name) => this.#look(`stream ${name}`, () => this.#replicaFault(name, serverVersion))),
      ...consumers.map(({ stream, durable }) =>
        this.#look(`consumer ${durable} of ${stream}`, async () => {
          await this.#manager.consumers.info(stream, durable);
          return null;
        }),
      ),
    ]);
    return found.filter((fault) => fault !== null);
  }

  async #look(what: string, look: () => Promise<string | null>): Promise<string | null> {
    try {
      return await look();
    } catch (cause) {
      if (isNotFound(cause)) return `${what} is missing: ${mend}`;
      throw unreadable(what, cause);
    }
  }

  /** Deployment refuses such a stream; this finds one that was made otherwise, or a server that was replaced. */
  async #replicaFault(name: string, serverVersion: string): Promise<string | null> {
    const { config } = await this.#manager.streams.info(name);
    const fault = replicaFault(serverVersion, config.num_replicas);
    return fault === null ? null : `stream ${name} has ${config.num_replicas} replicas: ${fault}`;
  }

  async ackFloor(stream: string, durable: string): Promise<number> {
    const info = await this.#consumer(stream, durable);
    return info.num_pending === 0 && info.num_ack_pending === 0
      ? Math.max(info.ack_floor.stream_seq, info.delivered.stream_seq)
      : info.ack_floor.stream_seq;
  }

  async pending(stream: string, durable: string): Promise<number> {
    return (await this.#consumer(stream, durable)).num_pending;
  }

  async underWay(stream: string, durable: string): Promise<UnderWay | null> {
    const { num_ack_pending, ack_floor, delivered } = await this.#consumer(stream, durable);
    return num_ack_pending === 0 ? null : { from: ack_floor.stream_seq + 1, to: delivered.stream_seq };
  }

  async deliveries(stream: string, durable: string): Promise<number> {
    return (await this.#consumer(stream, durable)).delivered.consumer_seq;
  }

  async #consumer(stream: string, durable: string): Promise<ConsumerInfo> {
    try {
      return await this.#manager.consumers.info(stream, durable);
    } catch (cause) {
      throw unreadable(`consumer ${durable} of ${stream}`, cause);
    }
  }

  async streamState(stream: string): Promise<StreamState> {
    try {
      const { state, config } = await this.#manager.streams.info(stream);
      return {
        messages: state.messages,
        bytes: state.bytes,
        maxBytes: config.max_bytes,
        firstSequence: state.first_seq,
        lastSequence: state.last_seq,
      };
    } catch (cause) {
      throw unreadable(`stream ${stream}`, cause);
    }
  }
}

const unreadable = (what: string, cause: unknown): OperationalError =>
  new OperationalError('READ_FAILED', `${what}: ${messageOf(cause)}`, { cause });
