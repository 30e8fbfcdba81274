/** A ledger in a real store for tests of its verification, and hands that change what is in it. */
import { randomBytes } from 'node:crypto';
import { copyFile } from 'node:fs/promises';
import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import type { AuditRecord } from '../platform/codec.ts';
import type { StreamMessage } from '../platform/nats/bus.ts';
import type { JobEventKind, JobRef } from '../platform/topology.ts';
import { headerNames } from '../platform/topology.ts';
import { writerOf } from './fixture.ts';
import { Ledger } from './ledger.ts';
import { signCheckpoint } from './tlog/checkpoint.ts';
import { MemoryLog } from './tlog/fixture.ts';

export type Cell = string | number | Uint8Array | null;

/** A store as somebody sees it who goes around the ledger. */
export interface Tampering {
  readonly location: string;
  /** `?` stands for each value. */
  run(sql: string, ...values: Cell[]): Promise<void>;
  /** First column of the first row. */
  get(sql: string, ...values: Cell[]): Promise<Cell>;
  /** Takes everything out of all tables, but for who writes and in which version. */
  clear(): Promise<void>;
  /** Lets `use` have a store with this content that it may change; afterwards this one is as it was. */
  lend<T>(use: (store: Tampering) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

export const tampering = async (location: string): Promise<Tampering> =>
  location.startsWith('postgres') ? postgres(location) : sqlite(location);

const isContent = (table: string): boolean => !/version|writer/.test(table);

/** Each copy is a file. */
function sqlite(location: string): Tampering {
  const using = <T>(use: (database: DatabaseSync) => T): T => {
    const database = new DatabaseSync(location, { enableForeignKeyConstraints: false });
    try {
      // Nothing here need survive a loss of power.
      database.exec('PRAGMA synchronous = OFF');
      return use(database);
    } finally {
      database.close();
    }
  };
  return {
    location,
    run: async (sql, ...values) => void using((database) => database.prepare(sql).run(...values)),
    get: async (sql, ...values) =>
      using((database) => Object.values(database.prepare(sql).get(...values) ?? {})[0] as Cell),
    clear: async () =>
      using((database) => {
        const tables = database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all();
        for (const { name } of tables) if (isContent(String(name))) database.exec(`DELETE FROM ${name}`);
      }),
    lend: async (use) => {
      const copy = `${location}-${randomBytes(4).toString('hex')}`;
      await copyFile(location, copy);
      return use(sqlite(copy));
    },
    close: async () => undefined,
  };
}

/** A copy of a database takes a second, one of some tables within it a few milliseconds. One connection does it all. */
async function postgres(location: string): Promise<Tampering> {
  const client = new pg.Client({ connectionString: location });
  await client.connect();
  // Foreign keys are checked by triggers, and those are off in this mode.
  await client.query('SET session_replication_role = replica; SET synchronous_commit = off');
  await client.query('CREATE SCHEMA lent');
  const { rows } = await client.query("SELECT tablename FROM pg_tables WHERE schemaname = 'sandbus'");
  const tables: string[] = rows.map(({ tablename }) => tablename).filter(isContent);
  const forTables = async (make: (table: string) => string) =>
    void (await client.query(['BEGIN', ...tables.map(make), 'COMMIT'].join('; ')));
  await forTables((table) => `CREATE TABLE lent.${table} AS TABLE sandbus.${table}`);
  const query = (sql: string, values: readonly Cell[]) => {
    let number = 0;
    return client.query(
      sql.replaceAll('?', () => `$${++number}`),
      [...values],
    );
  };
  const store: Tampering = {
    location,
    run: async (sql, ...values) => void (await query(sql, values)),
    get: async (sql, ...values) => Object.values((await query(sql, values)).rows[0] ?? {})[0] as Cell,
    clear: () => forTables((table) => `DELETE FROM sandbus.${table}`),
    lend: async (use) => {
      try {
        return await use(store);
      } finally {
        await forTables(
          (table) => `DELETE FROM sandbus.${table}; INSERT INTO sandbus.${table} SELECT * FROM lent.${table}`,
        );
      }
    },
    close: () => client.end(),
  };
  return store;
}

export const jobOf = (number: number, tenant = number % 3 === 0 ? 'globex' : 'acme'): JobRef => ({
  tenant,
  jobId: `0198c2f0-0000-7000-8000-${number.toString(16).padStart(12, '0')}`,
});

const steps: readonly JobEventKind[] = ['submitted', 'verified', 'routed', 'started', 'finished'];

/** What record `sequence` is: ten jobs go side by side through their five steps, then the next ten. */
export function storyOf(sequence: number): [JobRef, JobEventKind] {
  const [round, within] = [Math.floor(sequence / 50), sequence % 50];
  return [jobOf(round * 10 + (within % 10)), steps[Math.floor(within / 10)] as JobEventKind];
}

/** Writes that many records as the service would, with a checkpoint at each of these sizes. */
export async function fill(
  location: string,
  size: number,
  checkpointsAt: readonly number[],
  log: MemoryLog = new MemoryLog(),
): Promise<MemoryLog> {
  const writer = await writerOf(location);
  try {
    const ledger = await Ledger.open(writer);
    for (const treeSize of [...checkpointsAt, size]) {
      const messages = Array.from({ length: treeSize - ledger.size }, (_, at) =>
        messageOf(log.add(...storyOf(ledger.size + at))),
      );
      const at = 1_800_000_000_000_000 + treeSize;
      await ledger.append(messages, at);
      if (!checkpointsAt.includes(treeSize)) continue;
      const note = signCheckpoint({ size: treeSize, root: ledger.root }, log.signer);
      await writer.addCheckpoint({ treeSize, rootHash: ledger.root, at, note });
    }
  } finally {
    await writer.close();
  }
  return log;
}

/** The message of which this record was made. */
function messageOf(record: AuditRecord): StreamMessage {
  const { stream, streamSequence, subject, payload, signature, eventId } = record;
  const headers =
    signature === null
      ? {}
      : {
          [headerNames.signature]: Buffer.from(signature).toString('base64'),
          [headerNames.eventId]: eventId,
        };
  return { stream, sequence: streamSequence, subject, headers, data: payload ?? new Uint8Array() };
}

/** What is done to a store. */
export type Change = (store: Tampering) => Promise<unknown>;

/** Another value in a column of one row. */
export const set =
  (
    column: string,
    sequence: number,
    change: (value: Cell) => Cell,
    table = 'record',
    key = 'sequence',
  ): Change =>
  async (store) => {
    const value = await store.get(`SELECT ${column} FROM ${table} WHERE ${key} = ?`, sequence);
    await store.run(`UPDATE ${table} SET ${column} = ? WHERE ${key} = ?`, change(value), sequence);
  };
/** Values that are not what they were. */
export const flip = (value: Cell): Cell =>
  Uint8Array.from(value as Uint8Array, (byte, at) => (at === 3 ? byte ^ 1 : byte));
export const lastLetter = (value: Cell): Cell => `${String(value).slice(0, -1)}~`;
export const oneMore = (value: Cell): Cell => Number(value) + 1;
export const remove =
  (...sequences: number[]): Change =>
  async (store) => {
    for (const sequence of sequences) await store.run('DELETE FROM record WHERE sequence = ?', sequence);
  };
export const all =
  (...changes: Change[]): Change =>
  async (store) => {
    for (const change of changes) await change(store);
  };
