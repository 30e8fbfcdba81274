/** What services see of NATS: publish with confirmation, pull, request and reply, plain notices, KV and objects. */
import type { JetStreamClient, JetStreamManager, NatsConnection } from 'nats';
import { messageOf, OperationalError } from '../errors.ts';
import type { EventIdentity } from '../event-keys.ts';
import type { Needs, ObjectBucketName } from '../topology.ts';
import type { ConnectOptions } from './connection.ts';
import { connect, endOf, ownId } from './connection.ts';
import { isEmptyPull, isNoResponders, isNotFound, isOtherStream } from './failures.ts';
import { KvBucket } from './kv.ts';
import type { Delivery, Headers, Reply, Request, StreamMessage } from './messages.ts';
import { fromMsg, fromStored, toDelivery, toHeaders } from './messages.ts';
import { ObjectBucket } from './objects.ts';
import { publishFailure } from './publish-failure.ts';
import { PullConsumer } from './pull-consumer.ts';
import { replicaFault } from './server-version.ts';
import type { TopologyOptions } from './streams.ts';
import { ensureTopology } from './streams.ts';
import type { StreamState, UnderWay } from './survey.ts';
import { Survey } from './survey.ts';
import { kindOfSubject, WriteWatch } from './write-watch.ts';

export type { Delivery, Headers, Reply, Request, StreamMessage } from './messages.ts';
export type { PullConsumer } from './pull-consumer.ts';
export type { StreamState, UnderWay } from './survey.ts';

export interface PublishOptions {
  /** Nats-Msg-Id: a second publish with the same id within the window is dropped by the server. */
  readonly id?: string;
  readonly headers?: Headers;
  /** Refuse unless the stream's last sequence is this one. */
  readonly expectedLastSequence?: number;
}

export interface Published {
  readonly sequence: number;
  readonly duplicate: boolean;
}

export type Stop = () => void;

/** How long a server is given to take what is buffered when a connection is closed. */
const lastWordsMs = 10_000;

export interface BusOptions extends ConnectOptions {
  /** As whom events are said on this connection; null for those who say none. */
  readonly identity?: EventIdentity | null;
}

export class Bus {
  readonly identity: EventIdentity | null;
  readonly #connection: NatsConnection;
  readonly #stream: JetStreamClient;
  readonly #manager: JetStreamManager;
  readonly #survey: Survey;
  readonly #credentials: string | null;
  readonly #end: Promise<OperationalError | null>;
  readonly #writes = new WriteWatch();

  private constructor(connection: NatsConnection, manager: JetStreamManager, options: BusOptions) {
    this.identity = options.identity ?? null;
    this.#credentials = options.credentials;
    this.#connection = connection;
    this.#end = endOf(connection, options);
    this.#stream = connection.jetstream({ timeout: 10_000 });
    this.#manager = manager;
    this.#survey = new Survey(manager);
  }

  static async connect(options: BusOptions): Promise<Bus> {
    const connection = await connect(options);
    const manager = await connection.jetstreamManager({ checkAPI: false });
    return new Bus(connection, manager, options);
  }

  get maxPayload(): number {
    return this.#connection.info?.max_payload ?? 1024 * 1024;
  }

  get serverVersion(): string {
    return this.#connection.info?.version ?? 'unknown';
  }

  /** Why this server is not to be used as it is: a node of a cluster that would lose events. Null is no reason. */
  get serverFault(): string | null {
    return this.#connection.info?.cluster === undefined ? null : replicaFault(this.serverVersion, 3);
  }

  /** What this connection cannot get stored at the moment, each as a sentence. */
  get writeTroubles(): string[] {
    return this.#writes.troubles;
  }

  /** An id for `text` that is always the same, and that nobody without our credentials can guess. */
  ownId(text: string): string {
    return ownId(this.#credentials, text);
  }

  /** Resolves when the connection is closed for good, with the error if there was one. */
  closed(): Promise<Error | undefined> {
    return this.#connection.closed().then((error) => error ?? undefined);
  }

  ensureTopology(options: TopologyOptions): Promise<void> {
    return ensureTopology(this.#connection, options);
  }

  /**
   * Publishes to a stream and waits for the server's confirmation. Throws OperationalError: TOO_LARGE (before
   * sending: the server would drop the connection), BUS_FULL, CONFLICT (expectedLastSequence), PUBLISH_FAILED,
   * NATS_REFUSED.
   */
  async publish(subject: string, data: Uint8Array, options: PublishOptions = {}): Promise<Published> {
    this.#checkSize(subject, data);
    try {
      const ack = await this.#stream.publish(subject, data, {
        headers: toHeaders(options.headers ?? {}),
        ...(options.id === undefined ? {} : { msgID: options.id }),
        ...(options.expectedLastSequence === undefined
          ? {}
          : { expect: { lastSequence: options.expectedLastSequence } }),
      });
      this.#writes.cameThrough(kindOfSubject(subject));
      return { sequence: ack.seq, duplicate: ack.duplicate };
    } catch (cause) {
      const end = await this.#reasonOfEnd();
      if (end !== null) throw end;
      const failure = publishFailure(subject, cause);
      if (failure.code === 'PUBLISH_FAILED') this.#writes.failed(kindOfSubject(subject), messageOf(cause));
      throw failure;
    }
  }

  /**
   * Null when a stream takes what is published under this subject, else why not, in a sentence. Nothing is stored: what is
   * published names a stream that it wants and that is not there, and the stream that is there refuses it (10060).
   */
  async refusal(subject: string): Promise<string | null> {
    try {
      await this.#stream.publish(subject, new Uint8Array(), { expect: { streamName: '-' }, timeout: 3_000 });
      return `${subject} was taken although it wanted another stream`;
    } catch (cause) {
      if (isOtherStream(cause)) return null;
      return isNoResponders(cause)
        ? 'JetStream does not answer: it is disabled, or there is no topology'
        : `JetStream does not answer: ${messageOf(cause)}`;
    }
  }

  /** A plain notice: whoever listens gets it, nobody keeps it. */
  notify(subject: string, data: Uint8Array = new Uint8Array()): void {
    this.#connection.publish(subject, data);
  }

  listen(subject: string, onMessage: (message: Request) => void): Stop {
    const subscription = this.#connection.subscribe(subject, {
      callback: (error, message) => {
        if (error === null) onMessage(fromMsg(message));
      },
    });
    return () => subscription.unsubscribe();
  }

  /** One request, one reply. Throws OperationalError NO_SERVICE, REQUEST_FAILED or NATS_REFUSED. */
  async request(
    subject: string,
    data: Uint8Array,
    headers: Headers = {},
    timeoutMs = 10_000,
  ): Promise<Reply> {
    this.#checkSize(subject, data);
    try {
      return fromMsg(
        await this.#connection.request(subject, data, { timeout: timeoutMs, headers: toHeaders(headers) }),
      );
    } catch (cause) {
      const end = await this.#reasonOfEnd();
      if (end !== null) throw end;
      const code = isNoResponders(cause) ? 'NO_SERVICE' : 'REQUEST_FAILED';
      const what = isNoResponders(cause) ? 'no service answers; is it running?' : messageOf(cause);
      throw new OperationalError(code, `request ${subject}: ${what}`, { cause });
    }
  }

  /** Answers requests; services of the same `queue` share them. The handler must not throw: an error is a reply. */
  serve(filter: string, queue: string, handler: (request: Request) => Promise<Reply>): Stop {
    const subscription = this.#connection.subscribe(filter, {
      queue,
      callback: (error, message) => {
        if (error === null)
          void handler(fromMsg(message)).then((reply) =>
            message.respond(reply.data, { headers: toHeaders(reply.headers) }),
          );
      },
    });
    return () => subscription.unsubscribe();
  }

  /** A durable consumer, to be pulled from. Throws OperationalError NO_CONSUMER when deployment has not made it. */
  async consumer(stream: string, durable: string): Promise<PullConsumer> {
    try {
      const consumer = await this.#stream.consumers.get(stream, durable);
      return new PullConsumer(consumer, stream, this.#connection);
    } catch (cause) {
      const mend = 'the topology is made by `sandbus up` or `sandbus topology`';
      throw new OperationalError(
        'NO_CONSUMER',
        `consumer ${durable} of ${stream}: ${messageOf(cause)}; ${mend}`,
        {
          cause,
        },
      );
    }
  }

  /** One message if one is waiting, else null, at once. */
  async pullNow(stream: string, durable: string): Promise<Delivery | null> {
    try {
      return toDelivery(await this.#stream.pull(stream, durable), stream, this.#connection);
    } catch (cause) {
      if (isEmptyPull(cause)) return null;
      throw new OperationalError('PULL_FAILED', `pull ${durable} of ${stream}: ${messageOf(cause)}`, {
        cause,
      });
    }
  }

  /** The message at `sequence`, or null. */
  messageAt(stream: string, sequence: number): Promise<StreamMessage | null> {
    return this.#message(stream, { seq: sequence });
  }

  /** The first message of `subject` (wildcards allowed) at or after `sequence`, or null. */
  nextMessage(stream: string, sequence: number, subject: string): Promise<StreamMessage | null> {
    return this.#message(stream, { seq: sequence, next_by_subj: subject });
  }

  /** The newest message of `subject`, or null. */
  lastMessage(stream: string, subject: string): Promise<StreamMessage | null> {
    return this.#message(stream, { last_by_subj: subject });
  }

  async #message(
    stream: string,
    query: { seq: number; next_by_subj?: string } | { last_by_subj: string },
  ): Promise<StreamMessage | null> {
    try {
      return fromStored(await this.#manager.streams.getMessage(stream, query), stream);
    } catch (cause) {
      if (isNotFound(cause)) return null;
      throw new OperationalError('READ_FAILED', `message of ${stream}: ${messageOf(cause)}`, { cause });
    }
  }

  /** Removes a message; false when it is gone already. */
  async deleteMessage(stream: string, sequence: number): Promise<boolean> {
    try {
      return await this.#manager.streams.deleteMessage(stream, sequence, false);
    } catch (cause) {
      if (isNotFound(cause) || /no message found|store eof/i.test(messageOf(cause))) return false;
      throw new OperationalError('DELETE_FAILED', `message ${sequence} of ${stream}: ${messageOf(cause)}`, {
        cause,
      });
    }
  }

  get isClosed(): boolean {
    return this.#connection.isClosed();
  }

  /** Everything up to this stream sequence is delivered to and acked by the consumer. */
  ackFloor(stream: string, durable: string): Promise<number> {
    return this.#survey.ackFloor(stream, durable);
  }

  /** What is not, or not safely, in the server of all that is needed, each as a sentence. Throws OperationalError READ_FAILED. */
  missing(needs: Needs): Promise<string[]> {
    return this.#survey.missing(needs, this.serverVersion);
  }

  /** Messages that wait for their first delivery by the consumer. */
  pending(stream: string, durable: string): Promise<number> {
    return this.#survey.pending(stream, durable);
  }

  /** Where the messages lie that are delivered to the consumer and not acked, acked ones among them; null when there are none. */
  underWay(stream: string, durable: string): Promise<UnderWay | null> {
    return this.#survey.underWay(stream, durable);
  }

  /** How often the consumer has delivered a message, repetitions included. */
  deliveries(stream: string, durable: string): Promise<number> {
    return this.#survey.deliveries(stream, durable);
  }

  streamState(stream: string): Promise<StreamState> {
    return this.#survey.streamState(stream);
  }

  kv(name: string): Promise<KvBucket> {
    return KvBucket.bind(this.#connection, name, this.#writes);
  }

  objects(name: ObjectBucketName): Promise<ObjectBucket> {
    return ObjectBucket.bind(this.#connection, name);
  }

  /** Sends what is buffered and closes; a server that does not take it is not waited for. */
  async close(): Promise<void> {
    if (this.#connection.isClosed()) return;
    const late = Promise.withResolvers<void>();
    const timer = setTimeout(() => void this.abandon().finally(late.resolve), lastWordsMs);
    await Promise.race([this.#connection.drain(), late.promise]).finally(() => clearTimeout(timer));
    // A drain that loses the server in its last step leaves a connection that goes on trying for ever.
    if (!this.#connection.isClosed()) await this.abandon();
  }

  /** Closes without a last word: what still waits for an answer fails. */
  abandon(): Promise<void> {
    return this.#connection.close();
  }

  /** Why nothing will ever come through this connection again; null as long as something may, or when we have closed it. */
  async #reasonOfEnd(): Promise<OperationalError | null> {
    return this.isClosed ? await this.#end : null;
  }

  #checkSize(subject: string, data: Uint8Array): void {
    const room = this.maxPayload - 4096;
    if (data.length > room)
      throw new OperationalError(
        'TOO_LARGE',
        `${data.length} bytes for ${subject}, at most ${room}: upload instead`,
      );
  }
}
