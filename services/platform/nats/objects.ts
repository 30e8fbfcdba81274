/**
 * An object store keyed by digest. Objects are read chunk by chunk, by sequence: the library would make a consumer, which
 * services may not, and wait for ever on an object with missing chunks. Every read has a deadline and is checked against
 * the digest that it was asked for.
 */
import { createHash } from 'node:crypto';
import type { NatsConnection, ObjectInfo, ObjectStore } from 'nats';
import { OperationalError } from '../errors.ts';
import { withoutAccountInfo } from './connection.ts';
import { isFull } from './failures.ts';
import type { ObjectTarget } from './object-writer.ts';
import { writeObject } from './object-writer.ts';

export interface ObjectFacts {
  readonly size: number;
  readonly metadata: Readonly<Record<string, string>>;
}

const readDeadlineMs = 60_000;
const chunkTimeoutMs = 10_000;

export class ObjectBucket {
  readonly #store: ObjectStore;
  readonly #connection: NatsConnection;
  readonly #target: ObjectTarget;
  readonly #name: string;

  private constructor(store: ObjectStore, connection: NatsConnection, target: ObjectTarget) {
    this.#store = store;
    this.#connection = connection;
    this.#target = target;
    this.#name = target.bucket;
  }

  static async bind(connection: NatsConnection, name: string): Promise<ObjectBucket> {
    const client = connection.jetstream(withoutAccountInfo);
    const manager = await connection.jetstreamManager(withoutAccountInfo);
    return new ObjectBucket(await client.views.os(name), connection, { client, manager, bucket: name });
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
    await this.#guard(key, () => writeObject(this.#target, key, content, metadata));
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
    const info = await this.#guard(key, () => this.#store.info(key));
    if (info === null || info.deleted) return false;
    const hash = createHash('sha256');
    const giveUpAt = performance.now() + readDeadlineMs;
    let sequence = 0;
    for (let left = info.size; left > 0; ) {
      const chunk = await this.#within(giveUpAt - performance.now(), key, this.#chunkAfter(info, sequence));
      sequence = chunk.seq;
      left -= chunk.data.length;
      hash.update(chunk.data);
      await sink(chunk.data);
    }
    const actual = hash.digest('hex');
    if (actual !== sha256) throw this.#corrupt(key, sha256, actual);
    return true;
  }

  /** The next chunk; OBJECT_TIMEOUT where there should be one and is none, since that is what its absence means. */
  async #chunkAfter(info: ObjectInfo, sequence: number): Promise<{ seq: number; data: Uint8Array }> {
    const query = { seq: sequence + 1, next_by_subj: `$O.${this.#name}.C.${info.nuid}` };
    const reply = await this.#guard(info.name, () =>
      this.#connection.request(`$JS.API.DIRECT.GET.OBJ_${this.#name}`, JSON.stringify(query), {
        timeout: chunkTimeoutMs,
      }),
    );
    const seq = Number(reply.headers?.get('Nats-Sequence'));
    if (reply.headers?.code === 404 || !(seq > sequence))
      throw new OperationalError('OBJECT_TIMEOUT', `object ${info.name} in ${this.#name} ends too early`);
    return { seq, data: reply.data };
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
      // What the content's own source says is not the store's doing.
      if (cause instanceof OperationalError) throw cause;
      const code = isFull(cause) ? 'BUS_FULL' : 'OBJECT_FAILED';
      throw new OperationalError(code, `object ${key} in ${this.#name}: ${String(cause)}`, { cause });
    }
  }
}
