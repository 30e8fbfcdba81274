/** Where a ledger is: a file of SQLite, or a database of PostgreSQL. */
import type { ClaimWriter, OpenReader } from './store.ts';

const isPostgres = (location: string): boolean => /^postgres(ql)?:\/\//.test(location);

export const openReader: OpenReader = async (location) => {
  if (isPostgres(location)) throw new Error('not yet');
  const { openForReading } = await import('./sqlite/database.ts');
  const { SqliteReader } = await import('./sqlite/reader.ts');
  return new SqliteReader(openForReading(location));
};

export const claimWriter: ClaimWriter = async (location) => {
  if (isPostgres(location)) throw new Error('not yet');
  const { claimSqlite } = await import('./sqlite/claim.ts');
  return claimSqlite(location);
};
