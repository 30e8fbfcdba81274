/** A key-value bucket with compare-and-set. Reads may be stale on replicas: decide only by create and update. */
import type { KV, NatsConnection } from 'nats';
import { OperationalError } from '../errors.ts';
import { isConflict } from './failures.ts';

export interface KvValue {
  readonly key: string;
  readonly value: Uint8Array;
  readonly revision: number;
}

export class KvBucket {
  readonly #kv: KV;
  readonly #name: string;

  private constructor(kv: KV, name: string) {
    this.#kv = kv;
    this.#name = name;
  }

  /** Binds to a bucket that deployment has made. */
  static async bind(connection: NatsConnection, name: string): Promise<KvBucket> {
    return new KvBucket(await connection.jetstream().views.kv(name, { bindOnly: true }), name);
  }

  /** The value, or null when the key does not exist. */
  async get(key: string): Promise<KvValue | null> {
    const entry = await this.#guard(() => this.#kv.get(key));
    if (entry === null || entry.operation !== 'PUT') return null;
    return { key, value: entry.value, revision: entry.revision };
  }

  /** Revision of the new key, or null when the key exists. */
  create(key: string, value: Uint8Array): Promise<number | null> {
    return this.#guard(() => this.#kv.create(key, value));
  }

  /** The new revision, or null when `revision` is not the newest. */
  update(key: string, value: Uint8Array, revision: number): Promise<number | null> {
    return this.#guard(() => this.#kv.update(key, value, revision));
  }

  async put(key: string, value: Uint8Array): Promise<void> {
    await this.#guard(() => this.#kv.put(key, value));
  }

  async remove(key: string): Promise<void> {
    await this.#guard(() => this.#kv.purge(key));
  }

  /**
   * Calls `onValue` for each key as it stands and for every later change; null stands for a removed key.
   * Returns its stop.
   */
  async watch(onValue: (key: string, value: KvValue | null) => void): Promise<() => void> {
    const watcher = await this.#kv.watch();
    const run = async () => {
      for await (const entry of watcher) {
        const { key, revision } = entry;
        onValue(key, entry.operation === 'PUT' ? { key, value: entry.value, revision } : null);
      }
    };
    void run();
    return () => watcher.stop();
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
