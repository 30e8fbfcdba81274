/** Messages as services see them, made of what the `nats` package hands out. */
import type { JsMsg, Msg, MsgHdrs, StoredMsg } from 'nats';
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

export function toDelivery(message: JsMsg, stream: string): Delivery {
  return {
    stream,
    sequence: message.seq,
    subject: message.subject,
    data: message.data,
    headers: fromHeaders(message.headers),
    deliveryCount: message.info.deliveryCount,
    publishedAtMs: message.info.timestampNanos / 1e6,
    settle: new SettleByReply(message),
  };
}

class SettleByReply implements Settle {
  readonly #message: JsMsg;

  constructor(message: JsMsg) {
    this.#message = message;
  }

  async ack(): Promise<void> {
    await this.#message.ackAck();
  }

  ackUnconfirmed(): void {
    this.#message.ack();
  }

  retry(delayMs: number): void {
    this.#message.nak(delayMs);
  }

  terminate(): void {
    this.#message.term();
  }

  working(): void {
    this.#message.working();
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
