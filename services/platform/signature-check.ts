/**
 * Checks Ed25519 signatures on threads of their own, many to a message. One check takes a core 0.13 ms, and crypto.verify
 * with a callback still costs its caller a fifth of that; this costs it a few microseconds.
 */
import type { KeyObject } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';

/** So that a burst is shared by the threads, and answers come while the rest is checked. */
const mostChecks = 64;
const mostThreads = 4;
/** On their way to one thread: the next one is there when it has done the one before. */
const mostMessages = 2;

/** One message to a thread: of each check the key, the signature and the signed bytes, these two one after the other. */
export interface CheckMessage {
  /** That this thread has not had yet; it numbers the keys as they come. */
  readonly newKeys: readonly KeyObject[];
  readonly keyOf: readonly number[];
  /** Of the signed bytes. */
  readonly lengths: readonly number[];
  readonly bytes: Uint8Array<ArrayBuffer>;
}

export const signatureBytes = 64;

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

  /** While all threads are busy, more gather: a message costs about as much for one check as for all that it can hold. */
  #send(): void {
    this.#threads ??= Array.from(
      { length: Math.min(mostThreads, availableParallelism()) },
      () => new CheckThread(() => this.#send()),
    );
    while (this.#queue.length > 0) {
      const free =
        this.#threads.find((thread) => thread.messages === 0) ??
        this.#threads.find((thread) => thread.messages < mostMessages);
      if (free === undefined) return;
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
  #failure: Error | null = null;

  constructor(onFree: () => void) {
    this.#onFree = onFree;
    this.#worker.on('message', (verdicts: Uint8Array) => this.#settle(verdicts));
    this.#worker.on('error', (error) =>
      this.#fail(error instanceof Error ? error : new Error(String(error))),
    );
    this.#worker.on('exit', () => this.#fail(new Error('the thread that checks signatures has ended')));
    this.#worker.unref();
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
    for (const [index, { resolve }] of checks.entries()) resolve(verdicts[index] === 1);
    this.#onFree();
  }

  #fail(error: Error): void {
    this.#failure ??= error;
    for (const checks of this.#sent.splice(0)) rejectAll(checks, this.#failure);
    this.#onFree();
  }
}

function rejectAll(checks: readonly Check[], error: Error): void {
  for (const { reject } of checks) reject(error);
}

/** Numbers the keys that are new in `numbers`. */
function packed(checks: readonly Check[], numbers: Map<KeyObject, number>): CheckMessage {
  const newKeys: KeyObject[] = [];
  for (const { key } of checks)
    if (!numbers.has(key)) {
      numbers.set(key, numbers.size);
      newKeys.push(key);
    }
  const lengths = checks.map(({ bytes }) => bytes.length);
  const bytes = new Uint8Array(lengths.reduce((sum, length) => sum + signatureBytes + length, 0));
  let at = 0;
  for (const check of checks) {
    bytes.set(check.signature, at);
    bytes.set(check.bytes, at + signatureBytes);
    at += signatureBytes + check.bytes.length;
  }
  return { newKeys, keyOf: checks.map(({ key }) => numbers.get(key) ?? -1), lengths, bytes };
}
