/** Becoming the writer of a ledger in SQLite: the lock file first, then the database. */
import { lockForWriting, openDatabase } from './database.ts';
import { SqliteWriter } from './writer.ts';

/** Null while another process is the writer. Throws UsageError, and OperationalError LEDGER_UNAVAILABLE. */
export function claimSqlite(file: string): SqliteWriter | null {
  const lock = lockForWriting(file);
  if (lock === null) return null;
  try {
    return new SqliteWriter(openDatabase(file), lock);
  } catch (error) {
    lock.close();
    throw error;
  }
}
