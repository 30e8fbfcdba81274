/** What SQLite knows about a batch. The database is in this process, so a look at a row costs microseconds. */
import type { DatabaseSync } from 'node:sqlite';
import type { Cause } from '../../platform/topology.ts';
import { jobColumns } from '../columns.ts';
import { jobKey, placeKey } from '../keys.ts';
import type { Row } from '../rows.ts';
import { jobOf } from '../rows.ts';
import type { BatchKeys, Head, Known, Original } from '../store.ts';

export class LookUp {
  readonly #statements: ReturnType<typeof prepare>;

  constructor(database: DatabaseSync) {
    this.#statements = prepare(database);
  }

  known(keys: BatchKeys, head: Head): Known {
    const epochs = new Map(
      this.#statements.epochs.all().map((row) => [String(row.name), Number(row.epoch)] as const),
    );
    const atPlace = this.#atPlaces(keys.places, epochs);
    return {
      head,
      epochs,
      atPlace,
      held: new Set([...atPlace.keys(), ...this.#heldOf(keys, epochs)]),
      byEventId: found(keys.eventIds, (id) => this.#statements.byEventId.get(id) as unknown as Original),
      jobs: new Map(
        keys.jobs.flatMap(({ tenant, jobId }) => {
          const row = this.#statements.job.get(tenant, jobId);
          return row === undefined ? [] : [[jobKey({ tenant, jobId }), jobOf(row)] as const];
        }),
      ),
      nextTenantSequence: new Map(keys.tenants.map((tenant) => [tenant, this.#tenantSize(tenant)] as const)),
      traceTenants: new Map(keys.traceIds.map((traceId) => [traceId, this.#tenantsOf(traceId)] as const)),
    };
  }

  #atPlaces(places: readonly Cause[], epochs: ReadonlyMap<string, number>): Map<string, Original> {
    const { atPlace, duplicateAt } = this.#statements;
    const originals = new Map<string, Original>();
    // Usually nothing was ever repeated, and every place would be looked up twice.
    const repeats = this.#statements.anyDuplicate.get() !== undefined;
    for (const place of places) {
      const at = [place.stream, epochs.get(place.stream) ?? 0, place.sequence] as const;
      const original: Row | undefined = atPlace.get(...at) ?? (repeats ? duplicateAt.get(...at) : undefined);
      if (original !== undefined) originals.set(placeKey(place), original as unknown as Original);
    }
    return originals;
  }

  /** Causes beside the places themselves. */
  #heldOf({ places, causes }: BatchKeys, epochs: ReadonlyMap<string, number>): string[] {
    const looked = new Set(places.map(placeKey));
    return causes.flatMap((cause) => {
      const key = placeKey(cause);
      if (looked.has(key)) return [];
      looked.add(key);
      const at = [cause.stream, epochs.get(cause.stream) ?? 0, cause.sequence] as const;
      return this.#statements.holds.get(...at, ...at) === undefined ? [] : [key];
    });
  }

  #tenantSize(tenant: string): number {
    return Number(this.#statements.tenantSize.get(tenant)?.size ?? 0);
  }

  #tenantsOf(traceId: string): ReadonlySet<string> {
    return new Set(this.#statements.tenantsOfTrace.all(traceId).map((row) => String(row.tenant)));
  }
}

function found<T>(keys: readonly string[], get: (key: string) => T | undefined): Map<string, T> {
  const map = new Map<string, T>();
  for (const key of keys) {
    const value = get(key);
    if (value !== undefined) map.set(key, value);
  }
  return map;
}

function prepare(database: DatabaseSync) {
  const place = 'stream = ? AND stream_epoch = ? AND stream_sequence = ?';
  return {
    epochs: database.prepare('SELECT name, epoch FROM stream'),
    atPlace: database.prepare(`SELECT sequence, subject, payload FROM record WHERE ${place}`),
    duplicateAt: database.prepare(`SELECT r.sequence, r.subject, coalesce(d.payload, r.payload) AS payload
      FROM duplicate d JOIN record r ON r.sequence = d.sequence
      WHERE d.stream = ? AND d.stream_epoch = ? AND d.stream_sequence = ?`),
    holds: database.prepare(
      `SELECT 1 FROM record WHERE ${place} UNION ALL SELECT 1 FROM duplicate WHERE ${place}`,
    ),
    byEventId: database.prepare('SELECT sequence, subject, payload FROM record WHERE event_id = ?'),
    job: database.prepare(`SELECT ${jobColumns} FROM job WHERE tenant = ? AND job_id = ?`),
    anyDuplicate: database.prepare('SELECT 1 FROM duplicate LIMIT 1'),
    tenantSize: database.prepare(
      'SELECT coalesce(max(tenant_sequence) + 1, 0) AS size FROM record WHERE tenant = ?',
    ),
    tenantsOfTrace: database.prepare('SELECT DISTINCT tenant FROM job WHERE trace_id = ?'),
  };
}
