/**
 * Checks Ed25519 signatures on threads of their own, many to a message. One check takes a core 0.05 ms by libsodium, half
 * of what it takes by OpenSSL; crypto.verify with a callback costs its caller half of that, this a few microseconds.
 */
import type { KeyObject } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';

/** So that a burst is shared by the threads, and answers come while the rest is checked. */
const mostChecks = 128;
const mostThreads = 4;
/**
 * On their way to one thread: enough that it has work while its caller commits a batch, and no more, so that a burst is
 * shared by the threads as they get done.
 */
const mostMessages = 4;
/** A thread that has so many has work until more have gathered for it. */
const enoughMessages = 2;

/**
 * One message to a thread. Of each check the number of its key and the length of the signed bytes (4 bytes each, big-endian),
 * the signature, the signed bytes.
 */
export interface CheckMessage {
  /** Raw public keys (RFC 8032) that this thread has not had yet; it numbers the keys as they come. */
  readonly newKeys: readonly Uint8Array[];
  readonly checks: number;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

export const signatureBytes = 64;
export const checkHeaderBytes = 8;
const rawKeyBytes = 32;

interface Check {
  readonly key: KeyObject;
  readonly bytes: Uint8Array;
  readonly signature: Uint8Array;
  readonly resolve: (isValid: boolean) => void;
  readonly reject: (error: unknown) => void;
}

export class SignatureChecks {
  #threads: readonly CheckThread[] | null = null;
  #queue: Check[] = [];

  /** Whether it is the signature (64 bytes) of the key over the bytes. The threads start with the first check. */
  check(key: KeyObject, bytes: Uint8Array, signature: Uint8Array): Promise<boolean> {
    return new Promise((resolve, reject) => {
      // What arrived on the socket at one time goes in one message.
      if (this.#queue.length === 0) setImmediate(() => this.#send());
      this.#queue.push({ key, bytes, signature, resolve, reject });
    });
  }

  /** Resolves when the threads can check: each takes some tenths of a second to start. Rejects when one cannot. */
  async start(): Promise<void> {
    await Promise.all(this.#started().map(({ ready }) => ready));
  }

  #started(): readonly CheckThread[] {
    this.#threads ??= Array.from(
      { length: Math.min(mostThreads, availableParallelism()) },
      () => new CheckThread(() => this.#send()),
    );
    return this.#threads;
  }

  /** While all threads are busy, more gather: a message costs about as much for one check as for all that it can hold. */
  #send(): void {
    const threads = this.#started();
    while (this.#queue.length > 0) {
      const free = threads.reduce((least, thread) => (thread.messages < least.messages ? thread : least));
      if (free.messages >= (this.#queue.length < mostChecks ? enoughMessages : mostMessages)) return;
      free.send(this.#queue.splice(0, mostChecks));
    }
  }
}

class CheckThread {
  /** Without the arguments of the process: a program that Node got as text is not this one. */
  readonly #worker = new Worker(new URL('./signature-check-thread.ts', import.meta.url), { execArgv: [] });
  /** On their way, in order: answers come in the order of the messages. */
  readonly #sent: (readonly Check[])[] = [];
  readonly #numbers = new Map<KeyObject, number>();
  readonly #onFree: () => void;
  readonly #answered = Promise.withResolvers<void>();
  /** Resolves with its first answer. */
  readonly ready = this.#answered.promise;
  #failure: Error | null = null;

  constructor(onFree: () => void) {
    this.#onFree = onFree;
    this.#worker.on('message', (verdicts: Uint8Array) => this.#settle(verdicts));
    this.#worker.on('error', (error) =>
      this.#fail(error instanceof Error ? error : new Error(String(error))),
    );
    this.#worker.on('exit', () => this.#fail(new Error('the thread that checks signatures has ended')));
    this.#worker.unref();
    this.ready.catch(() => undefined);
    // Nothing to check: the answer says that it runs.
    this.send([]);
  }

  /** On their way. */
  get messages(): number {
    return this.#sent.length;
  }

  send(checks: readonly Check[]): void {
    if (this.#failure !== null) {
      rejectAll(checks, this.#failure);
      return;
    }
    const message = packed(checks, this.#numbers);
    // A process that waits for a verdict is not at its end.
    if (this.#sent.push(checks) === 1) this.#worker.ref();
    this.#worker.postMessage(message, [message.bytes.buffer]);
  }

  #settle(verdicts: Uint8Array): void {
    const checks = this.#sent.shift() ?? [];
    if (this.#sent.length === 0) this.#worker.unref();
    this.#answered.resolve();
    for (const [index, { resolve }] of checks.entries()) resolve(verdicts[index] === 1);
    this.#onFree();
  }

  #fail(error: Error): void {
    this.#failure ??= error;
    this.#answered.reject(this.#failure);
    for (const checks of this.#sent.splice(0)) rejectAll(checks, this.#failure);
    this.#onFree();
  }
}

function rejectAll(checks: readonly Check[], error: Error): void {
  for (const { reject } of checks) reject(error);
}

/** Numbers the keys that are new in `numbers`. */
function packed(checks: readonly Check[], numbers: Map<KeyObject, number>): CheckMessage {
  const newKeys: Uint8Array[] = [];
  let length = 0;
  for (const { key, bytes } of checks) {
    length += checkHeaderBytes + signatureBytes + bytes.length;
    if (numbers.has(key)) continue;
    numbers.set(key, numbers.size);
    newKeys.push(rawKey(key));
  }
  // Its buffer is handed over to the thread, so it may be no part of Node's pool.
  const packed = Buffer.from(new ArrayBuffer(length));
  let at = 0;
  for (const { key, bytes, signature } of checks) {
    packed.writeUInt32BE(numbers.get(key) ?? unknownKey, at);
    packed.writeUInt32BE(bytes.length, at + 4);
    packed.set(signature, at + checkHeaderBytes);
    packed.set(bytes, at + checkHeaderBytes + signatureBytes);
    at += checkHeaderBytes + signatureBytes + bytes.length;
  }
  return { newKeys, checks: checks.length, bytes: packed };
}

const unknownKey = 0xffff_ffff;

/** SubjectPublicKeyInfo of Ed25519 ends with it (RFC 8410, section 4). */
const rawKey = (key: KeyObject): Uint8Array =>
  Uint8Array.from(key.export({ type: 'spki', format: 'der' }).subarray(-rawKeyBytes));
