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
  /** `?` stands for each value. */
  run(sql: string, ...values: Cell[]): Promise<void>;
  /** First column of the first row. */
  get(sql: string, ...values: Cell[]): Promise<Cell>;
  /** Where another store with the same content is. It goes away with the first one. */
  copy(): Promise<string>;
}

export const tampering = (location: string): Tampering =>
  location.startsWith('postgres') ? postgres(location) : sqlite(location);

function sqlite(location: string): Tampering {
  const using = <T>(use: (database: DatabaseSync) => T): T => {
    const database = new DatabaseSync(location, { enableForeignKeyConstraints: false });
    try {
      return use(database);
    } finally {
      database.close();
    }
  };
  return {
    run: async (sql, ...values) => void using((database) => database.prepare(sql).run(...values)),
    get: async (sql, ...values) =>
      using((database) => Object.values(database.prepare(sql).get(...values) ?? {})[0] as Cell),
    copy: async () => {
      const copy = `${location}-${randomBytes(4).toString('hex')}`;
      await copyFile(location, copy);
      return copy;
    },
  };
}

function postgres(location: string): Tampering {
  const query = async (sql: string, values: Cell[], url = location) => {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    try {
      let number = 0;
      // Foreign keys are checked by triggers, and those are off in this mode.
      await client.query('SET session_replication_role = replica');
      return await client.query(
        sql.replaceAll('?', () => `$${++number}`),
        values,
      );
    } finally {
      await client.end();
    }
  };
  return {
    run: async (sql, ...values) => void (await query(sql, values)),
    get: async (sql, ...values) => Object.values((await query(sql, values)).rows[0] ?? {})[0] as Cell,
    copy: async () => {
      const [copy, admin] = [new URL(location), new URL(location)];
      copy.pathname = `/copy_${randomBytes(4).toString('hex')}`;
      admin.pathname = '/postgres';
      const [from, to] = [location, copy.href].map((url) => new URL(url).pathname.slice(1));
      await query(`CREATE DATABASE ${to} TEMPLATE ${from}`, [], admin.href);
      return copy.href;
    },
  };
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
