/** Messages as services see them, made of what the `nats` package hands out. */
import type { JsMsg, Msg, MsgHdrs, NatsConnection, StoredMsg } from 'nats';
import { headers as newHeaders } from 'nats';

export type Headers = Readonly<Record<string, string>>;

/** A message as a stream holds it. */
export interface StreamMessage {
  readonly stream: string;
  readonly sequence: number;
  readonly subject: string;
  readonly data: Uint8Array;
  readonly headers: Headers;
}

/** A message on its way to a handler. The consume loop alone settles it. */
export interface Delivery extends StreamMessage {
  /** 1 at first. */
  readonly deliveryCount: number;
  readonly publishedAtMs: number;
  readonly settle: Settle;
}

export interface Settle {
  /** Resolves when the server has it. */
  ack(): Promise<void>;
  ackUnconfirmed(): void;
  retry(delayMs: number): void;
  terminate(): void;
  working(): void;
}

export interface Reply {
  readonly data: Uint8Array;
  readonly headers: Headers;
}

export interface Request extends Reply {
  readonly subject: string;
}

export function toDelivery(message: JsMsg, stream: string, connection: Pick<NatsConnection, Says>): Delivery {
  return {
    stream,
    sequence: message.seq,
    subject: message.subject,
    data: message.data,
    headers: fromHeaders(message.headers),
    deliveryCount: message.info.deliveryCount,
    publishedAtMs: message.info.timestampNanos / 1e6,
    settle: new SettleByReply(replyOf(message), connection),
  };
}

/** The class of the client has it, its interface does not show it. */
function replyOf(message: JsMsg & { readonly reply?: string }): string {
  if (message.reply === undefined) throw new Error('a message of a stream has no reply subject');
  return message.reply;
}

type Says = 'publish' | 'request';

const words = new TextEncoder();
const says = { ack: words.encode('+ACK'), terminate: words.encode('+TERM'), working: words.encode('+WPI') };
const ackTimeoutMs = 10_000;
const nanosPerMs = 1e6;

/**
 * What is said to the reply subject of a message: +ACK, -NAK, +TERM, +WPI (NATS ADR-15). Not by the message itself: where
 * thousands are under way, what the client keeps for each would be most of the heap, copied by each collection.
 */
class SettleByReply implements Settle {
  readonly #reply: string;
  readonly #connection: Pick<NatsConnection, Says>;

  constructor(reply: string, connection: Pick<NatsConnection, Says>) {
    this.#reply = reply;
    this.#connection = connection;
  }

  async ack(): Promise<void> {
    await this.#connection.request(this.#reply, says.ack, { timeout: ackTimeoutMs });
  }

  ackUnconfirmed(): void {
    this.#connection.publish(this.#reply, says.ack);
  }

  retry(delayMs: number): void {
    const delay = Math.round(delayMs * nanosPerMs);
    this.#connection.publish(this.#reply, words.encode(`-NAK ${JSON.stringify({ delay })}`));
  }

  terminate(): void {
    this.#connection.publish(this.#reply, says.terminate);
  }

  working(): void {
    this.#connection.publish(this.#reply, says.working);
  }
}

export function fromMsg(message: Msg): Request {
  return { subject: message.subject, data: message.data, headers: fromHeaders(message.headers) };
}

export function fromStored(message: StoredMsg, stream: string): StreamMessage {
  return {
    stream,
    sequence: message.seq,
    subject: message.subject,
    data: message.data,
    headers: fromHeaders(message.header),
  };
}

function fromHeaders(source: MsgHdrs | undefined): Headers {
  const out: Record<string, string> = {};
  if (source !== undefined) for (const [key, values] of source) out[key] = values[0] ?? '';
  return out;
}

export function toHeaders(source: Headers): MsgHdrs {
  const out = newHeaders();
  for (const [key, value] of Object.entries(source)) out.set(key, value);
  return out;
}
