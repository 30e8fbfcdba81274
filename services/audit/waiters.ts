/** Long polls that wait for something to happen. Their number is bounded: each is memory that a stranger holds. */
import { RequestFault } from './request-fault.ts';

export interface WaiterLimits {
  readonly total: number;
  readonly perTenant: number;
}

export interface Ticket {
  /** True when woken, false when the time is over. */
  readonly woken: Promise<boolean>;
  cancel(): void;
}

export class Waiters {
  readonly #limits: WaiterLimits;
  readonly #byKey = new Map<string, Set<() => void>>();
  readonly #byTenant = new Map<string, number>();
  #total = 0;
  #closed = false;

  constructor(limits: WaiterLimits) {
    this.#limits = limits;
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** Takes a place for one long poll of the tenant; returns its release. Throws RequestFault BUSY. */
  enter(tenant: string): () => void {
    const ofTenant = this.#byTenant.get(tenant) ?? 0;
    if (this.#total >= this.#limits.total || ofTenant >= this.#limits.perTenant)
      throw new RequestFault(
        'BUSY',
        `too many requests wait already (${ofTenant} of yours): ask again without waitMs`,
      );
    this.#total++;
    this.#byTenant.set(tenant, ofTenant + 1);
    return () => {
      this.#total--;
      const left = (this.#byTenant.get(tenant) ?? 1) - 1;
      if (left === 0) this.#byTenant.delete(tenant);
      else this.#byTenant.set(tenant, left);
    };
  }

  /** Waits for a wake of `key`. Take the ticket before looking, so that nothing happens unseen in between. */
  ticket(key: string, timeoutMs: number): Ticket {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const set = this.#byKey.get(key) ?? new Set();
    const end = (woken: boolean) => {
      clearTimeout(timer);
      set.delete(wake);
      if (set.size === 0 && this.#byKey.get(key) === set) this.#byKey.delete(key);
      resolve(woken);
    };
    const wake = () => end(true);
    const timer = setTimeout(() => end(false), this.#closed ? 0 : timeoutMs);
    this.#byKey.set(key, set.add(wake));
    return { woken: promise, cancel: () => end(false) };
  }

  get isEmpty(): boolean {
    return this.#byKey.size === 0;
  }

  wake(key: string): void {
    for (const wake of [...(this.#byKey.get(key) ?? [])]) wake();
  }

  /** Wakes everybody; whoever waits from now on waits no time. */
  close(): void {
    this.#closed = true;
    for (const key of [...this.#byKey.keys()]) this.wake(key);
  }
}
