/** For each job the hash of its last leaf so far: as little as possible of each, since a ledger has many. */
import type { JobRef } from '../platform/topology.ts';
import { jobKey } from './keys.ts';
import { hashBytes } from './tlog/merkle.ts';

/** Hashes side by side in one buffer: an object for each would take four times as much. */
export class LastLeaves {
  /** Tenant → job → place of its hash. The strings are those of the records: a key made of both would be another one. */
  readonly #places = new Map<string, Map<string, number>>();
  #hashes = Buffer.alloc(1024 * hashBytes);
  #used = 0;

  get({ tenant, jobId }: JobRef): Uint8Array | null {
    const place = this.#places.get(tenant)?.get(jobId);
    return place === undefined ? null : this.#hashes.subarray(place, place + hashBytes);
  }

  set({ tenant, jobId }: JobRef, hash: Uint8Array): void {
    const jobs = this.#places.get(tenant) ?? new Map<string, number>();
    this.#places.set(tenant, jobs);
    const place = jobs.get(jobId) ?? this.#newPlace();
    jobs.set(jobId, place);
    this.#hashes.set(hash, place);
  }

  #newPlace(): number {
    const place = this.#used;
    this.#used += hashBytes;
    if (this.#used > this.#hashes.length)
      this.#hashes = Buffer.concat([this.#hashes, Buffer.alloc(this.#hashes.length)]);
    return place;
  }

  /** Keys (see keys.ts) of all of them. */
  keys(): ReadonlySet<string> {
    const keys = new Set<string>();
    for (const [tenant, jobs] of this.#places)
      for (const jobId of jobs.keys()) keys.add(jobKey({ tenant, jobId }));
    return keys;
  }
}
