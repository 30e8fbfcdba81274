/** Both stores for the tests of this folder, each empty and in a place of its own. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { encode } from '../platform/codec.ts';
import type { JobRef } from '../platform/topology.ts';
import { Ledger } from './ledger.ts';
import { claimWriter } from './open.ts';
import type { PostgresServer } from './postgres/server-fixture.ts';
import { debianPackage, findPostgres, startPostgres } from './postgres/server-fixture.ts';
import type { LedgerWriter } from './store.ts';

export interface TestStore {
  readonly name: string;
  /** Null, or why the tests of this store are skipped. */
  readonly missing: string | null;
  /** An empty ledger. Returns where it is. */
  make(): Promise<string>;
  /** Ends whatever `make` has started. */
  stop(): Promise<void>;
}

function sqlite(): TestStore {
  const folders: string[] = [];
  return {
    name: 'SQLite',
    missing: null,
    make: async () => {
      const folder = await mkdtemp(join(tmpdir(), 'sandbus-ledger-'));
      folders.push(folder);
      return join(folder, 'ledger.db');
    },
    stop: async () => {
      for (const folder of folders) await rm(folder, { recursive: true });
    },
  };
}

/** Of a ledger that nobody has open. */
const emptied = [
  ...[
    'duplicate',
    'record',
    'stream',
    'job',
    'job_key',
    'subtree',
    'checkpoint',
    'deletion',
    'feed',
    'erased',
    'span',
  ],
]
  .map((table) => `DELETE FROM sandbus.${table}`)
  .join('; ');

function postgres(): TestStore {
  let server: Promise<PostgresServer> | null = null;
  let location: string | null = null;
  const start = () => {
    server ??= startPostgres();
    return server;
  };
  return {
    name: 'PostgreSQL',
    missing:
      findPostgres() === null ? `PostgreSQL is not there: install Debian's package ${debianPackage}` : null,
    // One database, emptied each time: making one costs more than most tests.
    make: async () => {
      const { database, query } = await start();
      if (location === null) location = await database();
      else await query(location, emptied);
      return location;
    },
    stop: async () => (await server)?.stop(),
  };
}

export const stores = (): TestStore[] => [sqlite(), postgres()];

/** The writer of a ledger that nobody else writes. */
export async function writerOf(location: string): Promise<LedgerWriter> {
  const store = await claimWriter(location);
  if (store === null) throw new Error('somebody else writes this ledger');
  return store;
}

export type OpenLedger = Ledger & AsyncDisposable;

/** A new, empty ledger. */
export async function emptyLedger(store: TestStore): Promise<OpenLedger> {
  const ledger = await Ledger.open(await writerOf(await store.make()));
  return Object.assign(ledger, { [Symbol.asyncDispose]: () => ledger.store.close() });
}

/** A JobVerified of a job, by one key. */
export function verified(job: JobRef, keyId: string, sha256: string): Uint8Array {
  const limits = {
    memoryBytes: 1,
    cpuMillis: 1,
    wallMs: 1,
    cpuTimeMs: null,
    processes: 1,
    outputBytes: 1,
    tmpBytes: 1,
  };
  return encode('JobVerified', {
    ...{ ...job, verifiedAt: 1, submissionSequence: 1, plugin: { name: 'hello.sh', sha256, size: 1 } },
    ...{ contentHead: Buffer.from('#!'), envelope: Buffer.from('{}'), keyIds: [keyId] },
    ...{ trustStoreVersion: 1, trustStoreDigest: '', policyDigest: '' },
    ...{ signedRuntime: 'bash', signedArchitecture: null, concurrency: null },
    spec: {
      ...{ args: [], env: {}, stdin: null, inputs: [], limits, requiresGpu: false, network: 'none' },
      ...{ maxAttempts: 1, deadline: 1, labels: {} },
    },
  });
}
