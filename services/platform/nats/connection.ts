/** The connection to NATS, and what every other file here needs of it. Only this folder knows the `nats` package. */
import { createHash, createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Authenticator, ConnectionOptions, NatsConnection } from 'nats';
import {
  credsAuthenticator,
  ErrorCode,
  Events,
  NatsError,
  connect as natsConnect,
  nkeyAuthenticator,
} from 'nats';
import { messageOf, OperationalError, UsageError } from '../errors.ts';
import { seedIn } from './nkeys.ts';

export interface ConnectOptions {
  readonly url: string;
  /** Name that the server shows for this connection. */
  readonly name: string;
  /** Credentials file, an nkey seed or a `.creds` with a JWT; null for a server without accounts. */
  readonly credentials: string | null;
  /** Where this connection gets its replies; `_INBOX` unless set. */
  readonly inboxPrefix?: string;
  /** How long a first connection is tried, milliseconds. */
  readonly timeoutMs?: number;
  /** Whether a connection whose credentials are taken away ends; else it tries for ever, as services do. */
  readonly endsWhenRefused?: boolean;
}

/**
 * The id under which `text` is known to whoever has these credentials, always the same, and that nobody else can guess.
 * Message ids of submissions are of this kind: the server remembers them for all tenants together, so one that can be
 * guessed could be used up by another tenant. Without credentials there is nobody to guess it.
 */
export function ownId(credentials: string | null, text: string): string {
  if (credentials === null) return text;
  const seed = seedIn(readCredentials(credentials)) ?? '';
  const key = createHash('sha256').update(`sandbus.v1.message-id\n${seed}`).digest();
  return createHmac('sha256', key).update(text).digest('base64url');
}

/** For JetStream contexts: what the account may use is not a service's to ask. */
export const withoutAccountInfo = { checkAPI: false, timeout: 10_000 };

/** Connects, trying again until `timeoutMs`; afterwards reconnects for ever. */
export async function connect(options: ConnectOptions): Promise<NatsConnection> {
  const giveUpAt = performance.now() + (options.timeoutMs ?? 15_000);
  for (;;) {
    try {
      return await natsConnect(natsOptions(options));
    } catch (cause) {
      if (cause instanceof UsageError) throw cause;
      if (isRefusal(cause)) throw refused(options, cause);
      if (isWithoutTls(cause)) throw withoutTls(options, cause);
      if (performance.now() > giveUpAt) throw unreachable(options.url, cause);
      await new Promise((done) => setTimeout(done, 200));
    }
  }
}

function natsOptions(options: ConnectOptions): ConnectionOptions {
  return {
    // Several nodes of a cluster are separated by commas.
    servers: options.url.split(','),
    // The client itself takes the scheme for nothing: it would go on in the clear where a server offers no TLS, or somebody
    // between them says so.
    ...(options.url.includes('tls://') ? { tls: {} } : {}),
    name: options.name,
    maxReconnectAttempts: -1,
    reconnectTimeWait: 250,
    timeout: 5000,
    pingInterval: 10_000,
    // A stack for each request that might fail costs more than the request.
    noAsyncTraces: true,
    // A server that reads its users anew may refuse for a moment.
    ignoreAuthErrorAbort: true,
    ...(options.inboxPrefix === undefined ? {} : { inboxPrefix: options.inboxPrefix }),
    ...(options.credentials === null ? {} : { authenticator: authenticatorFrom(options.credentials) }),
  };
}

/**
 * The file is read at each connection, so that new credentials need no restart. Where it cannot be, as when the tenant was
 * removed with it, the last ones are tried, and the server has its say: an authenticator that throws leaves a connection
 * that is neither open nor closed.
 */
function authenticatorFrom(file: string): Authenticator {
  let text = readCredentials(file);
  return (nonce) => {
    try {
      text = readCredentials(file);
    } catch {}
    const seed = seedIn(text);
    const isJwt = /BEGIN NATS USER JWT/.test(text);
    const authenticate =
      isJwt || seed === null ? credsAuthenticator(Buffer.from(text)) : nkeyAuthenticator(Buffer.from(seed));
    return authenticate(nonce);
  };
}

function readCredentials(file: string): string {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (cause) {
    throw new UsageError(`cannot read the NATS credentials ${file}: ${messageOf(cause)}`);
  }
  if (seedIn(text) === null) throw new UsageError(`${file} holds no NATS credentials (a user's seed, SU…)`);
  return text;
}

/** So often in a row, 250 ms after each other: a server that reads its users anew may refuse for a moment. */
const mostRefusals = 10;
const refusals: ReadonlySet<unknown> = new Set([
  ErrorCode.AuthorizationViolation,
  ErrorCode.AuthenticationExpired,
  ErrorCode.AccountExpired,
]);

/** Resolves when the connection is closed, with the reason; null when whoever has it closed it. */
export async function endOf(
  connection: NatsConnection,
  options: ConnectOptions,
): Promise<OperationalError | null> {
  const watched = options.endsWhenRefused === true ? closeWhenRefused(connection) : Promise.resolve(false);
  await connection.closed();
  return (await watched) ? refused(options, null) : null;
}

async function closeWhenRefused(connection: NatsConnection): Promise<boolean> {
  let count = 0;
  for await (const { type, data } of connection.status()) {
    if (type === Events.Reconnect) count = 0;
    if (type === Events.Error && refusals.has(data)) count += 1;
    if (count < mostRefusals) continue;
    await connection.close();
    return true;
  }
  return false;
}

/** A wrong key does not get better by trying. */
function isRefusal(cause: unknown): boolean {
  return /authorization|authentication/i.test(messageOf(cause));
}

/** Services and deployment have inboxes of their own; a tenant has its account's. */
function refused({ url, credentials, inboxPrefix }: ConnectOptions, cause: unknown): OperationalError {
  const what =
    credentials === null ? 'a connection without credentials' : `the credentials in ${credentials}`;
  const hint =
    inboxPrefix === undefined
      ? 'a tenant is made with `sandbus tenant add`, its file named by SANDBUS_NATS_CREDS'
      : 'credentials of services and of deployment are made with `sandbus access init`, the file named by SANDBUS_NATS_CREDS';
  return new OperationalError('NATS_REFUSED', `the NATS server at ${url} does not accept ${what}: ${hint}`, {
    cause,
  });
}

const isWithoutTls = (cause: unknown): boolean =>
  cause instanceof NatsError && cause.code === ErrorCode.ServerOptionNotAvailable;

function withoutTls({ url }: ConnectOptions, cause: unknown): OperationalError {
  const hint = 'give the server a certificate, or say nats:// where nobody listens in between';
  return new OperationalError('NATS_WITHOUT_TLS', `the NATS server at ${url} offers no TLS: ${hint}`, {
    cause,
  });
}

function unreachable(url: string, cause: unknown): OperationalError {
  const hint = 'is it running? `sandbus up` starts one, SANDBUS_NATS_URL names another';
  return new OperationalError('NATS_UNREACHABLE', `no NATS server at ${url} (${messageOf(cause)}): ${hint}`, {
    cause,
  });
}
