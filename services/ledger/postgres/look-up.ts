/** What PostgreSQL knows about a batch: one query for each kind of key, all at once. */
import type { Cause } from '../../platform/topology.ts';
import { headSql, jobColumns } from '../columns.ts';
import { jobKey, placeKey } from '../keys.ts';
import type { Row } from '../rows.ts';
import { headOf, jobOf } from '../rows.ts';
import type { BatchKeys, JobRow, Known, Original } from '../store.ts';
import type { Queryable } from './connection.ts';
import { query } from './connection.ts';

/** Places as they are asked for, each with the current epoch of its stream. */
const places = `unnest($1::text[], $2::bigint[]) AS place (stream, sequence)
  LEFT JOIN stream AS s ON s.name = place.stream`;
const inPlace = (
  table: string,
) => `${table}.stream = place.stream AND ${table}.stream_epoch = coalesce(s.epoch, 0)
  AND ${table}.stream_sequence = place.sequence`;

const atPlaceSql = `
  SELECT place.stream, place.sequence AS "streamSequence", r.sequence, r.subject, r.payload
    FROM ${places} JOIN record r ON ${inPlace('r')}
  UNION ALL
  SELECT place.stream, place.sequence, r.sequence, r.subject, coalesce(d.payload, r.payload)
    FROM ${places} JOIN duplicate d ON ${inPlace('d')} JOIN record r ON r.sequence = d.sequence`;

const heldSql = `
  SELECT place.stream, place.sequence FROM ${places} JOIN record r ON ${inPlace('r')}
  UNION
  SELECT place.stream, place.sequence FROM ${places} JOIN duplicate d ON ${inPlace('d')}`;

export async function lookUp(to: Queryable, keys: BatchKeys): Promise<Known> {
  const [head, epochs, atPlace, heldCauses, byEventId, jobs, sizes, traces] = await Promise.all([
    query(to, headSql),
    query(to, 'SELECT name, epoch FROM stream'),
    originalsAt(to, keys.places),
    held(to, keys.causes),
    byEventIds(to, keys.eventIds),
    jobsOf(to, keys),
    tenantSizes(to, keys.tenants),
    tenantsOfTraces(to, keys.traceIds),
  ]);
  return {
    head: headOf(head[0]),
    epochs: new Map(epochs.map(({ name, epoch }) => [name as string, epoch as number])),
    atPlace,
    held: new Set([...atPlace.keys(), ...heldCauses]),
    byEventId,
    jobs,
    nextTenantSequence: sizes,
    traceTenants: traces,
  };
}

const askedPlaces = (asked: readonly Cause[]) =>
  [asked.map(({ stream }) => stream), asked.map(({ sequence }) => sequence)] as const;

async function originalsAt(to: Queryable, asked: readonly Cause[]): Promise<Map<string, Original>> {
  if (asked.length === 0) return new Map();
  const rows = await query(to, atPlaceSql, askedPlaces(asked));
  return new Map(
    rows.map(({ stream, streamSequence, ...original }) => [
      placeKey({ stream: stream as string, sequence: streamSequence as number }),
      original as unknown as Original,
    ]),
  );
}

async function held(to: Queryable, asked: readonly Cause[]): Promise<string[]> {
  if (asked.length === 0) return [];
  return ((await query(to, heldSql, askedPlaces(asked))) as unknown as Cause[]).map(placeKey);
}

async function byEventIds(to: Queryable, ids: readonly string[]): Promise<Map<string, Original>> {
  if (ids.length === 0) return new Map();
  const sql =
    'SELECT event_id AS id, sequence, subject, payload FROM record WHERE event_id = ANY($1::text[])';
  return new Map(
    (await query(to, sql, [ids])).map(({ id, ...original }) => [
      id as string,
      original as unknown as Original,
    ]),
  );
}

async function jobsOf(to: Queryable, { jobs }: BatchKeys): Promise<Map<string, JobRow>> {
  if (jobs.size === 0) return new Map();
  const sql = `SELECT ${jobColumns} FROM job
    WHERE (tenant, job_id) IN (SELECT * FROM unnest($1::text[], $2::text[]))`;
  const asked = [...jobs.values()];
  const rows = await query(to, sql, [asked.map(({ tenant }) => tenant), asked.map(({ jobId }) => jobId)]);
  return new Map(rows.map(jobOf).map((job) => [jobKey(job), job]));
}

async function tenantSizes(to: Queryable, tenants: readonly string[]): Promise<Map<string, number>> {
  if (tenants.length === 0) return new Map();
  const sql = `SELECT tenant, coalesce((SELECT max(tenant_sequence) + 1 FROM record r WHERE r.tenant = asked.tenant), 0)
    AS size FROM unnest($1::text[]) AS asked (tenant)`;
  return new Map(
    (await query(to, sql, [tenants])).map(({ tenant, size }) => [tenant as string, size as number]),
  );
}

async function tenantsOfTraces(
  to: Queryable,
  traceIds: readonly string[],
): Promise<Map<string, Set<string>>> {
  const tenants = new Map<string, Set<string>>();
  if (traceIds.length === 0) return tenants;
  const sql = 'SELECT DISTINCT trace_id AS id, tenant FROM job WHERE trace_id = ANY($1::text[])';
  for (const { id, tenant } of (await query(to, sql, [traceIds])) as { id: string; tenant: string }[] & Row[])
    tenants.set(id, (tenants.get(id) ?? new Set()).add(tenant));
  return tenants;
}
