/** Erasing payloads. The hashes stay, so every proof does. (PostgreSQL overwrites what is erased when it vacuums.) */
import type { JobRef } from '../../platform/topology.ts';
import { ofOpenJob } from '../columns.ts';
import type { Queryable, Value } from './connection.ts';
import { change, query } from './connection.ts';

/** Returns how many records had a payload. */
export const eraseJob = (to: Queryable, { tenant, jobId }: JobRef): Promise<number> =>
  erase(to, 'tenant = $1 AND job_id = $2', [tenant, jobId]);

/** Oldest first. Remembers up to where nothing is left to erase, so that it does not look there again. */
export async function eraseBefore(to: Queryable, recordedBefore: number, limit: number): Promise<number> {
  const mark = (await number(to, 'SELECT sequence AS n FROM erased')) ?? 0;
  const falls = `sequence >= $1 AND payload IS NOT NULL AND NOT ${ofOpenJob}`;
  const last = await number(
    to,
    `SELECT max(sequence) AS n FROM (SELECT sequence FROM record WHERE ${falls} AND recorded_at < $2
      ORDER BY sequence LIMIT $3) AS oldest`,
    ...[mark, recordedBefore, limit],
  );
  if (last === null) return 0;
  const count = await erase(to, `${falls} AND sequence <= $2`, [mark, last]);
  const kept = await number(
    to,
    'SELECT min(sequence) AS n FROM record WHERE sequence >= $1 AND sequence <= $2 AND payload IS NOT NULL',
    ...[mark, last],
  );
  const remember =
    'INSERT INTO erased VALUES (0, $1) ON CONFLICT (id) DO UPDATE SET sequence = excluded.sequence';
  await change(to, remember, [kept ?? last + 1]);
  return count;
}

async function erase(to: Queryable, which: string, values: readonly Value[]): Promise<number> {
  const repeated = `UPDATE duplicate SET payload = NULL WHERE sequence IN (SELECT sequence FROM record WHERE ${which})`;
  await change(to, repeated, values);
  const erased = `UPDATE record SET payload = NULL, payload_salt = '' WHERE payload IS NOT NULL AND ${which}`;
  return change(to, erased, values);
}

async function number(to: Queryable, sql: string, ...values: number[]): Promise<number | null> {
  const [row] = await query(to, sql, values);
  return (row?.n ?? null) as number | null;
}
