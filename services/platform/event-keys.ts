/**
 * Signatures of events. Each service has an Ed25519 key of its own and signs the subject, the id and the bytes of what
 * it says; whoever reads an event checks the signature, and that this service may say such a thing, before anything is
 * decoded. Permissions on subjects are a second wall, not this one: a broker that is misconfigured or taken over can
 * lose events and delay them, and forge none.
 *
 *   Sandbus-Signature: base64(key id, 8 bytes || Ed25519 signature, 64 bytes)
 *   signed:            "sandbus.v1.event\n", then subject, event id and bytes, each after its length (8 bytes, big-endian)
 *   event id:          header Sandbus-Event-Id, else Nats-Msg-Id; its first part names the service
 *   key id:            the first 8 bytes of the SHA-256 of the public key (SPKI, DER)
 *
 * A record of the ledger has all of these, so that anybody can check it with the public keys alone.
 */
import type { KeyObject } from 'node:crypto';
import { createHash, createPrivateKey, createPublicKey, sign, verify } from 'node:crypto';
import { promisify } from 'node:util';
import { z } from 'zod';
import { messageOf, UsageError } from './errors.ts';
import type { Logger } from './log.ts';
import { SignatureChecks, signatureBytes } from './signature-check.ts';
import type { ServiceName } from './topology.ts';
import { headerNames, mayBeSaidBy, serviceNames } from './topology.ts';
import type { Parsed } from './watched-file.ts';
import { WatchedFile } from './watched-file.ts';

/** What a signature covers. */
export interface Signable {
  readonly subject: string;
  readonly id: string;
  readonly data: Uint8Array;
}

/** A message as it stands on the bus. */
export interface SignedMessage {
  readonly subject: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly data: Uint8Array;
}

export type Verdict =
  | { readonly ok: true; readonly signer: ServiceName }
  | {
      readonly ok: false;
      /** `unknown-key` may pass when the newest keyring arrives, `no-keyring` when there is one; `forged` never. */
      readonly fault: 'forged' | 'unknown-key' | 'no-keyring';
      readonly detail: string;
    };

/** Who speaks on a connection: signs as a service, and knows the keys of all. */
export interface EventIdentity {
  /** Who speaks; null in tests that speak as every service. */
  readonly service: ServiceName | null;
  sign(event: Signable): string;
  check(message: SignedMessage): Verdict;
  /** The same two, with the arithmetic on another thread: for whoever has many to do. */
  signAside(event: Signable): Promise<string>;
  checkAside(message: SignedMessage): Promise<Verdict>;
  /** Resolves when checking aside needs no start any more. */
  prepareAside(): Promise<void>;
}

const signInPool = promisify(sign);

const domain = Buffer.from('sandbus.v1.event\n');
/** A keyring that was looked at so long ago is still the newest. */
const recentMs = 100;
const keyIdBytes = 8;
const lengthBytes = 8;
/** Two, so that a new key can be known everywhere before it is used. */
const mostKeys = 2;

export type Keyring = ReadonlyMap<string, { readonly service: ServiceName; readonly key: KeyObject }>;

const keyringShape = z.strictObject({
  services: z.strictObject(
    Object.fromEntries(serviceNames.map((name) => [name, z.array(z.string()).max(mostKeys)])) as Record<
      ServiceName,
      z.ZodArray<z.ZodString>
    >,
  ),
});

/** The keyring as it stands in its file: service → public keys, PEM. */
export type KeyringContent = z.infer<typeof keyringShape>;

export function parseKeyringContent(bytes: Uint8Array): KeyringContent {
  return keyringShape.parse(JSON.parse(Buffer.from(bytes).toString('utf8')));
}

export function parseKeyring(bytes: Uint8Array): Parsed<Keyring> {
  try {
    const ring = new Map<string, { service: ServiceName; key: KeyObject }>();
    const { services } = parseKeyringContent(bytes);
    for (const service of serviceNames)
      for (const pem of services[service]) {
        const key = createPublicKey(pem);
        if (key.asymmetricKeyType !== 'ed25519') throw new Error(`a key of ${service} is not Ed25519`);
        const id = keyIdOf(key);
        if (ring.has(id)) throw new Error(`key ${id} is there twice`);
        ring.set(id, { service, key });
      }
    return { ok: true, value: ring };
  } catch (error) {
    return { ok: false, detail: error instanceof z.ZodError ? z.prettifyError(error) : messageOf(error) };
  }
}

/** Hex, as it stands in messages to people. */
export function keyIdOf(key: KeyObject): string {
  const spki = (key.type === 'public' ? key : createPublicKey(key)).export({ type: 'spki', format: 'der' });
  return createHash('sha256').update(spki).digest().subarray(0, keyIdBytes).toString('hex');
}

export function parseSigningKey(bytes: Uint8Array): Parsed<KeyObject> {
  try {
    const key = createPrivateKey(Buffer.from(bytes));
    return key.asymmetricKeyType === 'ed25519'
      ? { ok: true, value: key }
      : { ok: false, detail: `an Ed25519 key is needed, not ${key.asymmetricKeyType}` };
  } catch (error) {
    return { ok: false, detail: messageOf(error) };
  }
}

/** The id that a message's signature covers. */
export function idOfMessage(headers: SignedMessage['headers']): string {
  return headers[headerNames.eventId] ?? headers['Nats-Msg-Id'] ?? '';
}

export interface EventKeyFiles {
  readonly privateKey: string;
  readonly keyring: string;
}

const initMend = 'make them with `sandbus access init` (`sandbus up` does so at its first start)';

/** The keys of a service, from files that are read again when they change. */
export class EventKeys implements EventIdentity {
  readonly service: ServiceName;
  readonly #files: EventKeyFiles;
  readonly #privateKey: WatchedFile<KeyObject>;
  readonly #keyring: WatchedFile<Keyring>;
  readonly #checks = new SignatureChecks();
  #recent: { readonly atMs: number; readonly keyring: Keyring | null } | null = null;
  #signing: { key: KeyObject; id: Uint8Array } | null = null;

  private constructor(service: ServiceName, files: EventKeyFiles, log: Logger) {
    this.service = service;
    this.#files = files;
    this.#privateKey = new WatchedFile(files.privateKey, parseSigningKey, log);
    this.#keyring = new WatchedFile(files.keyring, parseKeyring, log);
  }

  /** Throws UsageError when the service could not say anything that the others would believe. */
  static load(service: ServiceName, files: EventKeyFiles, log: Logger): EventKeys {
    const keys = new EventKeys(service, files, log);
    const keyring = keys.#keyring.current();
    if (keyring === null)
      throw new UsageError(`no usable keys of the services in ${files.keyring}: ${initMend}`);
    const { key } = keys.#signingKey();
    if (keyring.get(keyIdOf(key))?.service !== service)
      throw new UsageError(
        `${files.keyring} does not list the key of ${files.privateKey} for ${service}: nobody would believe its events`,
      );
    return keys;
  }

  sign(event: Signable): string {
    const { key, id } = this.#signingKey();
    return Buffer.from(signEvent(event, key, id)).toString('base64');
  }

  async signAside(event: Signable): Promise<string> {
    const { key, id } = this.#signingKey();
    return Buffer.concat([id, await signInPool(null, signedBytes(event), key)]).toString('base64');
  }

  #signingKey(): { key: KeyObject; id: Uint8Array } {
    const key = this.#privateKey.current();
    if (key === null)
      throw new UsageError(`no usable key of ${this.service} in ${this.#files.privateKey}: ${initMend}`);
    if (this.#signing?.key !== key) this.#signing = { key, id: Buffer.from(keyIdOf(key), 'hex') };
    return this.#signing;
  }

  check(message: SignedMessage): Verdict {
    const keyring = this.#keyring.current();
    return keyring === null ? this.#noKeyring() : checkMessage(message, keyring);
  }

  checkAside(message: SignedMessage): Promise<Verdict> {
    const keyring = this.#recentKeyring();
    if (keyring === null) return Promise.resolve(this.#noKeyring());
    const claim = claimOf(message, keyring);
    if (!isClaim(claim)) return Promise.resolve(claim);
    return this.#checks
      .check(claim.key, claim.bytes, claim.signature)
      .then((isValid) => verdictOn(claim, isValid));
  }

  prepareAside(): Promise<void> {
    return this.#checks.start();
  }

  /** For who checks thousands a second: looks at the file's times a few times a second only. */
  #recentKeyring(): Keyring | null {
    const nowMs = performance.now();
    if (this.#recent === null || nowMs - this.#recent.atMs > recentMs)
      this.#recent = { atMs: nowMs, keyring: this.#keyring.current() };
    return this.#recent.keyring;
  }

  #noKeyring(): Verdict {
    const detail = `no usable keys of the services in ${this.#files.keyring}`;
    return { ok: false, fault: 'no-keyring', detail };
  }
}

/** Key id and signature, as they stand in the header once it is decoded. Pure. */
export function signEvent(
  event: Signable,
  key: KeyObject,
  id: Uint8Array = Buffer.from(keyIdOf(key), 'hex'),
): Uint8Array {
  return Buffer.concat([id, sign(null, signedBytes(event), key)]);
}

/** Pure. */
export function checkMessage(message: SignedMessage, keyring: Keyring): Verdict {
  const claim = claimOf(message, keyring);
  if (!isClaim(claim)) return claim;
  return verdictOn(claim, verify(null, claim.bytes, claim.key, claim.signature));
}

/** That a service has said a message: true if the signature is that of its key. */
interface Claim {
  readonly subject: string;
  readonly id: string;
  readonly keyId: string;
  readonly service: ServiceName;
  readonly key: KeyObject;
  readonly bytes: Uint8Array;
  readonly signature: Uint8Array;
}

const isClaim = (one: Claim | Verdict): one is Claim => 'signature' in one;

function claimOf(message: SignedMessage, keyring: Keyring): Claim | Verdict {
  const header = message.headers[headerNames.signature];
  if (header === undefined) return forged('it is not signed');
  const bytes = Buffer.from(header, 'base64');
  if (bytes.length !== keyIdBytes + signatureBytes)
    return forged(`its ${headerNames.signature} is malformed`);
  const keyId = bytes.subarray(0, keyIdBytes).toString('hex');
  const known = keyring.get(keyId);
  if (known === undefined)
    return { ok: false, fault: 'unknown-key', detail: `key ${keyId} is not in the keyring of the services` };
  const { service, key } = known;
  const [subject, id] = [message.subject, idOfMessage(message.headers)];
  const signed = signedBytes({ subject, id, data: message.data });
  return { subject, id, keyId, service, key, bytes: signed, signature: bytes.subarray(keyIdBytes) };
}

function verdictOn({ subject, id, keyId, service }: Claim, isValid: boolean): Verdict {
  if (!isValid)
    return forged(
      `its signature is not that of key ${keyId} of ${service} over this subject, id and content`,
    );
  if (id.split(':')[0] !== service) return forged(`${service} gave it the id ${id} of another`);
  if (!mayBeSaidBy(subject, service)) return forged(`${service} may not publish ${subject}`);
  return { ok: true, signer: service };
}

const forged = (detail: string): Verdict => ({ ok: false, fault: 'forged', detail });

function signedBytes({ subject, id, data }: Signable): Uint8Array {
  const [subjectBytes, idBytes] = [Buffer.byteLength(subject), Buffer.byteLength(id)];
  const bytes = Buffer.allocUnsafe(domain.length + 3 * lengthBytes + subjectBytes + idBytes + data.length);
  let at = domain.copy(bytes);
  at = putLength(bytes, at, subjectBytes);
  at += bytes.write(subject, at);
  at = putLength(bytes, at, idBytes);
  at += bytes.write(id, at);
  bytes.set(data, putLength(bytes, at, data.length));
  return bytes;
}

/** Lengths are of things in memory: the upper half is nearly always 0. Returns where the next byte belongs. */
function putLength(bytes: Buffer, at: number, length: number): number {
  bytes.writeUInt32BE(Math.floor(length / 2 ** 32), at);
  return bytes.writeUInt32BE(length % 2 ** 32, at + 4);
}
