/** Both stores for the tests of this folder, each empty and in a place of its own. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Ledger } from './ledger.ts';
import { claimWriter } from './open.ts';
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

export const stores = (): TestStore[] => [sqlite()];

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
