/** Where a ledger is: a file of SQLite, or a database of PostgreSQL. */
import { join } from 'node:path';
import type { ClaimWriter, OpenReader } from './store.ts';

/** The file of SQLite where nothing else is configured. */
export const ledgerFileIn = (stateDir: string): string => join(stateDir, 'ledger.db');

export const isPostgres = (location: string): boolean => /^postgres(ql)?:\/\//.test(location);

export const openReader: OpenReader = async (location) => {
  if (isPostgres(location)) return (await import('./postgres/claim.ts')).openPostgres(location);
  const { openForReading } = await import('./sqlite/database.ts');
  const { SqliteReader } = await import('./sqlite/reader.ts');
  return new SqliteReader(openForReading(location));
};

export const claimWriter: ClaimWriter = async (location) => {
  if (isPostgres(location)) return (await import('./postgres/claim.ts')).claimPostgres(location);
  const { claimSqlite } = await import('./sqlite/claim.ts');
  return claimSqlite(location);
};
