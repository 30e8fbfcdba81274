/** Opening a ledger in PostgreSQL: for reading, or as its writer. */
import type pg from 'pg';
import { UsageError } from '../../platform/errors.ts';
import { change, connectionTo, poolOf, query } from './connection.ts';
import { checkVersion, migrate } from './migrations.ts';
import { PostgresReader } from './reader.ts';
import { PostgresWriter } from './writer.ts';

/** Of the advisory lock: "sandbus" in ASCII. Locks are of one database. */
export const lockKey = 0x73616e646275;

export async function openPostgres(url: string): Promise<PostgresReader> {
  const pool = poolOf(url);
  try {
    await checkVersion(pool);
    return new PostgresReader(pool);
  } catch (error) {
    await pool.end();
    throw error;
  }
}

/** Null while another session is the writer. Throws UsageError, and OperationalError LEDGER_UNAVAILABLE. */
export async function claimPostgres(url: string): Promise<PostgresWriter | null> {
  const { promise: ended, resolve: onEnd } = Promise.withResolvers<Error>();
  const client = await connectionTo(url, onEnd);
  // A server that ends a session in good order says nothing more than that it has.
  client.on('end', () => onEnd(new Error('the connection was closed')));
  try {
    const [lock] = await query(client, 'SELECT pg_try_advisory_lock($1::bigint) AS held', [lockKey]);
    if (lock?.held !== true) {
      await client.end();
      return null;
    }
    await checkDurability(client);
    await migrate(client);
    const epoch = await raiseEpoch(client);
    return new PostgresWriter(poolOf(url), { client, epoch, ended });
  } catch (error) {
    await client.end().catch(() => undefined);
    throw error;
  }
}

/** What is committed must survive a loss of power: events are acked for it. */
async function checkDurability(client: pg.Client): Promise<void> {
  for (const setting of ['fsync', 'synchronous_commit']) {
    const [row] = await query(client, 'SELECT current_setting($1) AS value', [setting]);
    if (row?.value === 'off')
      throw new UsageError(
        `PostgreSQL runs with ${setting} = off, and would lose what it has confirmed: set it to on`,
      );
  }
}

/** Waits for the transaction under way of a writer before us, if there is one. */
async function raiseEpoch(client: pg.Client): Promise<number> {
  const [row] = await query(client, 'UPDATE writer SET epoch = epoch + 1 RETURNING epoch');
  if (row === undefined) {
    await change(client, 'INSERT INTO writer VALUES (0, 1)');
    return 1;
  }
  return row.epoch as number;
}
