/**
 * What SQLite knows about a batch. Most events are new and of a job that was written a moment ago, so what tells this is
 * asked once for a batch, and the rest for the few that are left.
 */
import type { DatabaseSync } from 'node:sqlite';
import type { Cause, JobRef } from '../../platform/topology.ts';
import { jobColumns } from '../columns.ts';
import { placeKey } from '../keys.ts';
import { jobOf } from '../rows.ts';
import type { BatchKeys, Head, JobRow, Known, Original } from '../store.ts';
import type { RecentWrites } from './recent-writes.ts';

type Epochs = ReadonlyMap<string, number>;

export class LookUp {
  readonly #statements: ReturnType<typeof prepare>;
  readonly #recent: RecentWrites;

  constructor(database: DatabaseSync, recent: RecentWrites) {
    this.#statements = prepare(database);
    this.#recent = recent;
  }

  known(keys: BatchKeys, head: Head): Known {
    const epochs = new Map(
      this.#statements.epochs.all().map((row) => [String(row.name), Number(row.epoch)] as const),
    );
    const places = this.#used(keys.places, epochs);
    const atPlace = this.#originalsAt(places, epochs);
    const jobs = this.#jobs(keys.jobs);
    return {
      head,
      epochs,
      atPlace,
      held: new Set([...atPlace.keys(), ...this.#heldOf(keys, epochs)]),
      byEventId: this.#byEventIds(keys.eventIds),
      jobs,
      nextTenantSequence: new Map(keys.tenants.map((tenant) => [tenant, this.#tenantSize(tenant)] as const)),
      traceTenants: this.#tenantsOfTraces(keys.traceIds, jobs),
    };
  }

  /** Of these places, those that can hold something: none after the last one of its stream that does. */
  #used(places: readonly Cause[], epochs: Epochs): Cause[] {
    const last = new Map<string, number>();
    return places.filter(({ stream, sequence }) => {
      if (!last.has(stream)) last.set(stream, this.#lastPlace(stream, epochs.get(stream) ?? 0));
      return sequence <= (last.get(stream) ?? 0);
    });
  }

  #lastPlace(stream: string, epoch: number): number {
    return Number(this.#statements.lastPlace.get(stream, epoch, stream, epoch)?.sequence);
  }

  #originalsAt(places: readonly Cause[], epochs: Epochs): Map<string, Original> {
    const { atPlace, duplicateAt } = this.#statements;
    const originals = new Map<string, Original>();
    for (const place of places) {
      const at = [place.stream, epochs.get(place.stream) ?? 0, place.sequence] as const;
      const original = atPlace.get(...at) ?? duplicateAt.get(...at);
      if (original !== undefined) originals.set(placeKey(place), original as unknown as Original);
    }
    return originals;
  }

  /** Causes beside the places themselves. */
  #heldOf({ places, causes }: BatchKeys, epochs: Epochs): string[] {
    if (causes.length === 0) return [];
    const looked = new Set(places.map(placeKey));
    const others = causes.filter((cause) => {
      const key = placeKey(cause);
      return !looked.has(key) && looked.add(key);
    });
    const rest = others.filter((cause) => !this.#recent.holds(cause));
    const unheld = new Set(rest);
    for (const cause of this.#used(rest, epochs)) if (this.#holds(cause, epochs)) unheld.delete(cause);
    return others.filter((cause) => !unheld.has(cause)).map(placeKey);
  }

  #holds({ stream, sequence }: Cause, epochs: Epochs): boolean {
    const at = [stream, epochs.get(stream) ?? 0, sequence] as const;
    const { recordHolds, duplicateHolds } = this.#statements;
    return (recordHolds.get(...at) ?? duplicateHolds.get(...at)) !== undefined;
  }

  #byEventIds(ids: readonly string[]): Map<string, Original> {
    const found = ids.length === 0 ? [] : this.#statements.byEventIds.all(JSON.stringify(ids));
    return new Map(found.map(({ id, ...original }) => [String(id), original as unknown as Original]));
  }

  #jobs(jobs: BatchKeys['jobs']): Map<string, JobRow> {
    const rows = new Map<string, JobRow>();
    for (const [key, job] of jobs) {
      const row = this.#recent.job(key) ?? this.#storedJob(job);
      if (row !== undefined) rows.set(key, row);
    }
    return rows;
  }

  #storedJob({ tenant, jobId }: JobRef): JobRow | undefined {
    const row = this.#statements.job.get(tenant, jobId);
    return row === undefined ? undefined : jobOf(row);
  }

  #tenantSize(tenant: string): number {
    return Number(this.#statements.tenantSize.get(tenant)?.size ?? 0);
  }

  /** All jobs of a trace are of one tenant (see plan.ts), so a job that is known tells whose it is. */
  #tenantsOfTraces(
    traceIds: readonly string[],
    jobs: ReadonlyMap<string, JobRow>,
  ): Map<string, ReadonlySet<string>> {
    const tenants = new Map<string, ReadonlySet<string>>();
    for (const { traceId, tenant } of jobs.values())
      if (traceId !== null) tenants.set(traceId, new Set([tenant]));
    for (const traceId of traceIds) if (!tenants.has(traceId)) tenants.set(traceId, this.#tenantsOf(traceId));
    return tenants;
  }

  #tenantsOf(traceId: string): ReadonlySet<string> {
    return new Set(this.#statements.tenantsOfTrace.all(traceId).map((row) => String(row.tenant)));
  }
}

function prepare(database: DatabaseSync) {
  const inStream = 'stream = ? AND stream_epoch = ?';
  const place = `${inStream} AND stream_sequence = ?`;
  return {
    epochs: database.prepare('SELECT name, epoch FROM stream'),
    lastPlace: database.prepare(`SELECT max(
      coalesce((SELECT max(stream_sequence) FROM record WHERE ${inStream}), 0),
      coalesce((SELECT max(stream_sequence) FROM duplicate WHERE ${inStream}), 0)) AS sequence`),
    atPlace: database.prepare(`SELECT sequence, subject, payload FROM record WHERE ${place}`),
    duplicateAt: database.prepare(`SELECT r.sequence, r.subject, coalesce(d.payload, r.payload) AS payload
      FROM duplicate d JOIN record r ON r.sequence = d.sequence
      WHERE d.stream = ? AND d.stream_epoch = ? AND d.stream_sequence = ?`),
    recordHolds: database.prepare(`SELECT 1 FROM record WHERE ${place}`),
    duplicateHolds: database.prepare(`SELECT 1 FROM duplicate WHERE ${place}`),
    byEventIds: database.prepare(`SELECT event_id AS id, sequence, subject, payload FROM record
      WHERE event_id IN (SELECT value FROM json_each(?))`),
    job: database.prepare(`SELECT ${jobColumns} FROM job WHERE tenant = ? AND job_id = ?`),
    tenantSize: database.prepare(
      'SELECT coalesce(max(tenant_sequence) + 1, 0) AS size FROM record WHERE tenant = ?',
    ),
    tenantsOfTrace: database.prepare('SELECT tenant FROM job WHERE trace_id = ?'),
  };
}
