/**
 * An object store keyed by digest. `nats` waits for ever on an object with missing chunks, so every read has a
 * deadline, and every read is checked against the digest that it was asked for.
 */
import { createHash } from 'node:crypto';
import type { NatsConnection, ObjectStore } from 'nats';
import { OperationalError } from '../errors.ts';
import { isFull } from './failures.ts';

export interface ObjectFacts {
  readonly size: number;
  readonly metadata: Readonly<Record<string, string>>;
}

const readDeadlineMs = 60_000;

export class ObjectBucket {
  readonly #store: ObjectStore;
  readonly #name: string;

  private constructor(store: ObjectStore, name: string) {
    this.#store = store;
    this.#name = name;
  }

  static async bind(connection: NatsConnection, name: string): Promise<ObjectBucket> {
    return new ObjectBucket(await connection.jetstream().views.os(name), name);
  }

  /** Size and metadata, or null when there is no such object. */
  async info(key: string): Promise<ObjectFacts | null> {
    const info = await this.#guard(key, () => this.#store.info(key));
    if (info === null || info.deleted) return null;
    return { size: info.size, metadata: info.metadata ?? {} };
  }

  /** Stores `content` under `key`, unless an object of that key is there already. */
  async put(
    key: string,
    content: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
    metadata: Record<string, string> = {},
  ) {
    if ((await this.info(key)) !== null) return;
    const stream = ReadableStream.from(content) as ReadableStream<Uint8Array>;
    const options = { max_chunk_size: 128 * 1024 };
    await this.#guard(key, () => this.#store.put({ name: key, metadata, options }, stream));
  }

  /**
   * Hands the object's chunks to `sink` in order, then returns true; false when there is no such object.
   * Throws OBJECT_CORRUPT when the bytes are not those of `sha256`, and OBJECT_TIMEOUT when they do not come.
   */
  async read(
    key: string,
    sha256: string,
    sink: (chunk: Uint8Array) => void | Promise<void>,
  ): Promise<boolean> {
    const result = await this.#guard(key, () => this.#store.get(key));
    if (result === null) return false;
    const hash = createHash('sha256');
    const reader = result.data.getReader();
    const giveUpAt = performance.now() + readDeadlineMs;
    try {
      for (;;) {
        const { done, value } = await this.#within(giveUpAt - performance.now(), key, reader.read());
        if (done) break;
        hash.update(value);
        await sink(value);
      }
    } finally {
      void reader.cancel().catch(() => undefined);
    }
    const actual = hash.digest('hex');
    if (actual !== sha256) throw this.#corrupt(key, sha256, actual);
    return true;
  }

  async delete(key: string): Promise<void> {
    await this.#guard(key, () => this.#store.delete(key));
  }

  #corrupt(key: string, expected: string, actual: string): OperationalError {
    return new OperationalError(
      'OBJECT_CORRUPT',
      `object ${key} in ${this.#name} has SHA-256 ${actual}, not ${expected}: upload it again`,
    );
  }

  #within<T>(ms: number, key: string, work: Promise<T>): Promise<T> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      const fault = new OperationalError('OBJECT_TIMEOUT', `object ${key} in ${this.#name} stopped coming`);
      timer = setTimeout(() => reject(fault), Math.max(1, ms));
    });
    return Promise.race([work, late]).finally(() => clearTimeout(timer));
  }

  async #guard<T>(key: string, action: () => Promise<T>): Promise<T> {
    try {
      return await action();
    } catch (cause) {
      const code = isFull(cause) ? 'BUS_FULL' : 'OBJECT_FAILED';
      throw new OperationalError(code, `object ${key} in ${this.#name}: ${String(cause)}`, { cause });
    }
  }
}
