/** A key-value bucket with compare-and-set. Reads may be stale on replicas: decide only by create and update. */
import { setTimeout as delay } from 'node:timers/promises';
import type { KV, KvEntry, NatsConnection, QueuedIterator } from 'nats';
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
   * Calls `onValue` for each key as it stands and for every later change; null stands for a removed key. A watch that
   * the server has forgotten, or whose bucket was made anew, begins again with every key as it stands. `complete` resolves
   * when all keys that there were have come.
   */
  async watch(
    onValue: (key: string, value: KvValue | null) => void,
  ): Promise<{ complete: Promise<void>; stop: () => void }> {
    const { promise: complete, resolve: initializedFn } = Promise.withResolvers<void>();
    const first = await this.#kv.watch({ initializedFn });
    const watch = new Watch(this.#kv, onValue);
    void watch.run(first);
    return { complete, stop: () => watch.stop() };
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

const stallCheckMs = 5_000;

class Watch {
  readonly #kv: KV;
  readonly #onValue: (key: string, value: KvValue | null) => void;
  readonly #stopped = new AbortController();
  #current: QueuedIterator<KvEntry> | null = null;
  #seen = 0;

  constructor(kv: KV, onValue: (key: string, value: KvValue | null) => void) {
    this.#kv = kv;
    this.#onValue = onValue;
  }

  stop(): void {
    this.#stopped.abort();
    this.#current?.stop();
  }

  async run(first: QueuedIterator<KvEntry>): Promise<void> {
    const { signal } = this.#stopped;
    let watcher: QueuedIterator<KvEntry> | null = first;
    while (!signal.aborted) {
      if (watcher !== null) await this.#follow(watcher);
      if (!signal.aborted) await pause(1_000, signal);
      watcher = signal.aborted ? null : await this.#kv.watch().catch(() => null);
    }
    watcher?.stop();
  }

  /** Until the watch ends, by itself or because it stands still while the bucket goes on. */
  async #follow(watcher: QueuedIterator<KvEntry>): Promise<void> {
    this.#current = watcher;
    this.#seen = 0;
    const done = new AbortController();
    void this.#endWhenStalled(watcher, done.signal);
    try {
      for await (const entry of watcher) {
        const { key, revision, value } = entry;
        this.#seen = revision;
        this.#onValue(key, entry.operation === 'PUT' ? { key, value, revision } : null);
      }
    } catch {
      // Whatever broke it, it is made anew.
    } finally {
      done.abort();
    }
  }

  async #endWhenStalled(watcher: QueuedIterator<KvEntry>, done: AbortSignal): Promise<void> {
    for (let before = -1; !done.aborted; ) {
      await pause(stallCheckMs, done);
      const last = await this.#lastRevision();
      if (last === null || done.aborted) continue;
      const behind = last !== this.#seen;
      if (behind && before === this.#seen) return watcher.stop();
      before = behind ? this.#seen : -1;
    }
  }

  /** Of the bucket; null when the server does not tell. */
  async #lastRevision(): Promise<number | null> {
    const status = await this.#kv.status().catch(() => null);
    return status === null ? null : status.streamInfo.state.last_seq;
  }
}

const pause = (ms: number, signal: AbortSignal): Promise<void> =>
  delay(ms, undefined, { signal }).catch(() => undefined);
