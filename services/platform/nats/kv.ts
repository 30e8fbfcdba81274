/** A key-value bucket with compare-and-set. Reads may be stale on replicas: decide only by create and update. */
import type { JetStreamManager, KV, NatsConnection } from 'nats';
import { messageOf, OperationalError } from '../errors.ts';
import { withoutAccountInfo } from './connection.ts';
import { isConflict, isNotFound } from './failures.ts';
import type { WriteWatch } from './write-watch.ts';

const watchPauseMs = 200;
/** How often a watch looks whether its bucket is still the one that it was. */
const newBucketMs = 5_000;

export interface KvValue {
  readonly key: string;
  readonly value: Uint8Array;
  readonly revision: number;
}

export class KvBucket {
  readonly #kv: KV;
  readonly #manager: JetStreamManager;
  readonly #name: string;
  readonly #writes: WriteWatch;

  private constructor(kv: KV, manager: JetStreamManager, name: string, writes: WriteWatch) {
    this.#kv = kv;
    this.#manager = manager;
    this.#name = name;
    this.#writes = writes;
  }

  /** Binds to a bucket that deployment has made. */
  static async bind(connection: NatsConnection, name: string, writes: WriteWatch): Promise<KvBucket> {
    const stream = connection.jetstream(withoutAccountInfo);
    const kv = await stream.views.kv(name, { bindOnly: true });
    return new KvBucket(kv, await connection.jetstreamManager(withoutAccountInfo), name, writes);
  }

  /** The value, or null when the key does not exist. */
  async get(key: string): Promise<KvValue | null> {
    const entry = await this.#guard(() => this.#kv.get(key));
    if (entry === null || entry.operation !== 'PUT') return null;
    return { key, value: entry.value, revision: entry.revision };
  }

  /** Revision of the new key, or null when the key exists. */
  create(key: string, value: Uint8Array): Promise<number | null> {
    return this.#write(() => this.#kv.create(key, value));
  }

  /** The new revision, or null when `revision` is not the newest. */
  update(key: string, value: Uint8Array, revision: number): Promise<number | null> {
    return this.#write(() => this.#kv.update(key, value, revision));
  }

  async put(key: string, value: Uint8Array): Promise<void> {
    await this.#write(() => this.#kv.put(key, value));
  }

  async remove(key: string): Promise<void> {
    await this.#write(() => this.#kv.purge(key));
  }

  /**
   * Calls `onValue` for each key as it stands, then for what changes; null stands for a removed key. Of changes that
   * follow each other closely only the last may be seen. Resolves when all keys that there are have been seen; returns
   * its stop. It walks the bucket's messages by sequence: that needs no consumer, which services may not make and which
   * can be lost, and goes on after any trouble where it was; in a bucket that was made anew, from its beginning, after
   * `onReset`: nothing that was seen before is there any more.
   */
  async watch(
    onValue: (key: string, value: KvValue | null) => void,
    onReset: () => void = () => undefined,
  ): Promise<() => void> {
    let next = 1;
    let bucket = await this.#whichBucket();
    let lookAtMs = 0;
    let stopped = false;
    let timer: NodeJS.Timeout | undefined;
    const walk = async () => {
      for (let found = await this.#at(next); found !== null && !stopped; found = await this.#at(next)) {
        next = found.revision + 1;
        onValue(found.key, found.removed ? null : found);
      }
      if (performance.now() < lookAtMs) return;
      lookAtMs = performance.now() + newBucketMs;
      const now = await this.#whichBucket();
      if (now === bucket) return;
      bucket = now;
      next = 1;
      onReset();
    };
    const later = () => {
      if (!stopped)
        timer = setTimeout(
          () =>
            void walk()
              .catch(() => undefined)
              .finally(later),
          watchPauseMs,
        );
    };
    await walk();
    later();
    return () => {
      stopped = true;
      clearTimeout(timer);
    };
  }

  /** The first value at or after a revision that no later one has replaced. */
  async #at(revision: number): Promise<(KvValue & { removed: boolean }) | null> {
    const query = { seq: revision, next_by_subj: `$KV.${this.#name}.>` };
    try {
      const { seq, subject, data, header } = await this.#manager.streams.getMessage(
        `KV_${this.#name}`,
        query,
      );
      const removed = /^(DEL|PURGE)$/.test(header.get('KV-Operation'));
      return { key: subject.slice(`$KV.${this.#name}.`.length), value: data, revision: seq, removed };
    } catch (cause) {
      if (isNotFound(cause)) return null;
      throw new OperationalError('KV_FAILED', `KV bucket ${this.#name}: ${String(cause)}`, { cause });
    }
  }

  /** When it was made tells one bucket from the next of the same name. */
  async #whichBucket(): Promise<string> {
    return (await this.#manager.streams.info(`KV_${this.#name}`)).created;
  }

  async #write<T>(action: () => Promise<T>): Promise<T | null> {
    const what = `KV bucket ${this.#name}`;
    try {
      const result = await this.#guard(action);
      this.#writes.cameThrough(what);
      return result;
    } catch (error) {
      this.#writes.failed(what, messageOf(error));
      throw error;
    }
  }

  async #guard<T>(action: () => Promise<T>): Promise<T | null> {
    try {
      return await action();
    } catch (cause) {
      if (isConflict(cause)) return null;
      throw new OperationalError('KV_FAILED', `KV bucket ${this.#name}: ${String(cause)}`, { cause });
    }
  }
}
