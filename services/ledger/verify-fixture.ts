/** A ledger in a real store for tests of its verification, and hands that change what is in it. */
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { AuditRecord } from '../platform/codec.ts';
import type { StreamMessage } from '../platform/nats/bus.ts';
import type { JobEventKind, JobRef } from '../platform/topology.ts';
import { headerNames } from '../platform/topology.ts';
import { Ledger } from './ledger.ts';
import { claimWriter } from './open.ts';
import { signCheckpoint } from './tlog/checkpoint.ts';
import { MemoryLog } from './tlog/fixture.ts';

export type Cell = string | number | Uint8Array | null;

/** A store that a test may change behind the ledger's back. */
export interface Tampered {
  readonly location: string;
  /** `?` stands for each value. */
  run(sql: string, ...values: Cell[]): Promise<void>;
  get(sql: string, ...values: Cell[]): Promise<Cell>;
  /** Another store with the same content. */
  copy(): Promise<Tampered>;
  remove(): Promise<void>;
}

export async function sqliteStore(from?: string): Promise<Tampered> {
  const folder = mkdtempSync(join(tmpdir(), 'sandbus-verify-'));
  const location = join(folder, 'ledger.db');
  if (from !== undefined) copyFileSync(from, location);
  const withDatabase = <T>(use: (database: DatabaseSync) => T): T => {
    const database = new DatabaseSync(location);
    try {
      database.exec('PRAGMA foreign_keys = OFF');
      return use(database);
    } finally {
      database.close();
    }
  };
  return {
    location,
    run: async (sql, ...values) => void withDatabase((database) => database.prepare(sql).run(...values)),
    get: async (sql, ...values) =>
      withDatabase((database) => Object.values(database.prepare(sql).get(...values) ?? {})[0] as Cell),
    copy: () => sqliteStore(location),
    remove: async () => rmSync(folder, { recursive: true }),
  };
}

export const jobOf = (number: number, tenant = number % 3 === 0 ? 'globex' : 'acme'): JobRef => ({
  tenant,
  jobId: `0198c2f0-0000-7000-8000-${number.toString(16).padStart(12, '0')}`,
});

const steps: readonly JobEventKind[] = ['submitted', 'verified', 'routed', 'started', 'finished'];

/** Record `n` belongs to a job of its own row of five, ten jobs at a time beside each other. */
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
  const writer = await claimWriter(location);
  if (writer === null) throw new Error(`${location} has another writer`);
  try {
    const ledger = await Ledger.open(writer);
    for (const treeSize of [...checkpointsAt, size]) {
      const messages = Array.from({ length: treeSize - ledger.size }, (_, at) =>
        messageOf(log.add(...storyOf(ledger.size + at))),
      );
      await ledger.append(messages, 1_800_000_000_000_000 + treeSize);
      if (!checkpointsAt.includes(treeSize)) continue;
      const note = signCheckpoint({ size: treeSize, root: ledger.root }, log.signer);
      await writer.addCheckpoint({
        treeSize,
        rootHash: ledger.root,
        at: 1_800_000_000_000_000 + treeSize,
        note,
      });
    }
  } finally {
    await writer.close();
  }
  return log;
}

/** The message of which this record was made. */
export function messageOf(record: AuditRecord): StreamMessage {
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
