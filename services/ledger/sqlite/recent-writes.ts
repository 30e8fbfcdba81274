/**
 * What was committed last, as the one writer has written it: the events of a job come close together, and each would read
 * the job's row and look for its cause again. Whoever else changes the database is caught by the check of the head.
 */
import type { Cause } from '../../platform/topology.ts';
import { jobKey } from '../keys.ts';
import type { Changes, JobRow } from '../store.ts';

/** A few megabytes. */
const mostJobs = 8192;
const mostPlaces = 65_536;

export class RecentWrites {
  readonly #jobs = new Map<string, JobRow>();
  /** Of each stream. */
  readonly #places = new Map<string, Set<number>>();

  /** By its key (keys.ts). */
  job(key: string): JobRow | undefined {
    return this.#jobs.get(key);
  }

  /** Whether a message of this place was committed; false is "look". */
  holds({ stream, sequence }: Cause): boolean {
    return this.#places.get(stream)?.has(sequence) ?? false;
  }

  /** Only what is committed. */
  add({ epochs, records, duplicates, jobs }: Changes): void {
    // Places of a stream that was made anew are others.
    if (epochs.size > 0) this.#places.clear();
    else {
      for (const { record } of records) this.#of(record.stream).add(record.streamSequence);
      for (const { stream, sequence } of duplicates) this.#of(stream).add(sequence);
    }
    for (const row of jobs) {
      const key = jobKey(row);
      // Last in the order of the map, so the first ones are those that were left alone longest.
      this.#jobs.delete(key);
      this.#jobs.set(key, row);
    }
    trim(this.#jobs, mostJobs);
    for (const places of this.#places.values()) trim(places, mostPlaces);
  }

  #of(stream: string): Set<number> {
    const places = this.#places.get(stream) ?? new Set<number>();
    if (places.size === 0) this.#places.set(stream, places);
    return places;
  }
}

interface Keyed<K> {
  readonly size: number;
  keys(): Iterable<K>;
  delete(key: K): boolean;
}

function trim<K>(oldestFirst: Keyed<K>, most: number): void {
  for (const key of oldestFirst.keys()) {
    if (oldestFirst.size <= most) return;
    oldestFirst.delete(key);
  }
}
