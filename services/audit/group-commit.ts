/**
 * Commits whatever is queued in one go. A commit to disk costs about the same for one event as for a hundred, and
 * while one is under way the next ones gather.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';

/** One commit is one turn of this process, in which it answers nobody. */
const mostItems = 512;

export interface Pending<T> {
  readonly item: T;
  readonly receivedAtMs: number;
  /** It is on disk. */
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

export class GroupCommit<T> {
  readonly #commit: (batch: readonly Pending<T>[]) => Promise<void>;
  #queue: Pending<T>[] = [];
  #busy = false;
  #endedAtMs = Number.NEGATIVE_INFINITY;

  /** `commit` settles each pending item; when it throws, all of them fail. */
  constructor(commit: (batch: readonly Pending<T>[]) => Promise<void>) {
    this.#commit = commit;
  }

  /** Resolves when `item` is committed. */
  submit(item: T, receivedAtMs: number): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#queue.push({ item, receivedAtMs, resolve, reject });
    if (!this.#busy) void this.#drain();
    return promise;
  }

  async #drain(): Promise<void> {
    this.#busy = true;
    while (this.#queue.length > 0) {
      // Lets what has arrived on the socket meanwhile join.
      await nextTurn();
      const batch = this.#queue.splice(0, mostItems);
      try {
        await this.#commit(batch);
      } catch (error) {
        for (const pending of batch) pending.reject(error);
      }
    }
    this.#busy = false;
    this.#endedAtMs = performance.now();
  }

  /** How long nothing has waited for its commit, milliseconds. */
  get quietMs(): number {
    return this.#busy ? 0 : performance.now() - this.#endedAtMs;
  }
}
