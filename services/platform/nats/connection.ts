/** The connection to NATS, and what every other file here needs of it. Only this folder knows the `nats` package. */
import { readFileSync } from 'node:fs';
import type { ConnectionOptions, NatsConnection } from 'nats';
import { credsAuthenticator, connect as natsConnect } from 'nats';
import { messageOf, OperationalError } from '../errors.ts';

export interface ConnectOptions {
  readonly url: string;
  /** Name that the server shows for this connection. */
  readonly name: string;
  /** Credentials file (`.creds`), or null for a server without accounts. */
  readonly credentials: string | null;
  /** How long a first connection is tried, milliseconds. */
  readonly timeoutMs?: number;
}

/** Connects, trying again until `timeoutMs`; afterwards reconnects for ever. */
export async function connect(options: ConnectOptions): Promise<NatsConnection> {
  const giveUpAt = performance.now() + (options.timeoutMs ?? 15_000);
  for (;;) {
    try {
      return await natsConnect(natsOptions(options));
    } catch (cause) {
      if (performance.now() > giveUpAt || isFinal(cause)) throw unreachable(options.url, cause);
      await new Promise((done) => setTimeout(done, 200));
    }
  }
}

function natsOptions(options: ConnectOptions): ConnectionOptions {
  return {
    // Several nodes of a cluster are separated by commas.
    servers: options.url.split(','),
    name: options.name,
    maxReconnectAttempts: -1,
    reconnectTimeWait: 250,
    timeout: 5000,
    pingInterval: 10_000,
    ...(options.credentials === null
      ? {}
      : { authenticator: credsAuthenticator(readFileSync(options.credentials)) }),
  };
}

/** A wrong password does not get better by trying. */
function isFinal(cause: unknown): boolean {
  return /authorization|authentication/i.test(messageOf(cause));
}

function unreachable(url: string, cause: unknown): OperationalError {
  const hint = 'is it running? `sandbus up` starts one, SANDBUS_NATS_URL names another';
  return new OperationalError('NATS_UNREACHABLE', `no NATS server at ${url} (${messageOf(cause)}): ${hint}`, {
    cause,
  });
}
