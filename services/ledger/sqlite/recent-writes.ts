/**
 * What was committed last, as the one writer has written it: the events of a job come close together, and each would read
 * the job's row and look for its cause again. Whoever else changes the database is caught by the check of the head.
 */
import type { Cause, JobRef } from '../../platform/topology.ts';
import { jobKey, placeKey } from '../keys.ts';
import type { Changes, JobRow } from '../store.ts';

/** A few megabytes. */
const mostJobs = 8192;
const mostPlaces = 65_536;

export class RecentWrites {
  readonly #jobs = new Map<string, JobRow>();
  readonly #places = new Set<string>();

  job(job: JobRef): JobRow | undefined {
    return this.#jobs.get(jobKey(job));
  }

  /** Whether a message of this place was committed; false is "look". */
  holds(place: Cause): boolean {
    return this.#places.has(placeKey(place));
  }

  /** Only what is committed. */
  add({ epochs, records, duplicates, jobs }: Changes): void {
    // Places of a stream that was made anew are others.
    if (epochs.size > 0) this.#places.clear();
    else {
      for (const { record } of records)
        this.#places.add(placeKey({ stream: record.stream, sequence: record.streamSequence }));
      for (const place of duplicates) this.#places.add(placeKey(place));
    }
    for (const row of jobs) {
      const key = jobKey(row);
      // Last in the order of the map, so the first ones are those that were left alone longest.
      this.#jobs.delete(key);
      this.#jobs.set(key, row);
    }
    trim(this.#jobs, mostJobs);
    trim(this.#places, mostPlaces);
  }
}

function trim(oldestFirst: Map<string, unknown> | Set<string>, most: number): void {
  for (const key of oldestFirst.keys()) {
    if (oldestFirst.size <= most) return;
    oldestFirst.delete(key);
  }
}
