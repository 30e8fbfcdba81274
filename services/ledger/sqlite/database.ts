/**
 * The SQLite database: how it is opened, how a transaction fails, and which failures may pass. Write-ahead log with
 * synchronous=FULL: what is committed survives a loss of power, as far as the disk keeps its promises.
 */
import { existsSync, mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { messageOf, OperationalError, UsageError } from '../../platform/errors.ts';
import type { ProcessLock } from '../../platform/process-lock.ts';
import { holdLock } from '../../platform/process-lock.ts';
import { steps } from './migrations.ts';

/** Primary result codes (sqlite.org/rescode.html) that can pass by themselves or by the hand of an operator. */
const passing = new Map([
  [5, 'another program holds it'],
  [6, 'a table is locked'],
  [7, 'there is no memory left'],
  [8, 'it cannot be written: check owner and mount options'],
  [10, 'reading or writing failed: check the disk'],
  [13, 'the disk is full: make room'],
  [14, 'it cannot be opened: check path and permissions'],
]);
const corrupt = 11;
const notADatabase = 26;

/** Opens or makes the database, and checks that the settings on which durability rests are in force. */
export function openDatabase(file: string): DatabaseSync {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const database = new DatabaseSync(file, { timeout: 1000 });
  try {
    database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;');
    // Ids are random, so each commit touches pages all over the indexes: they stay in memory (64 MiB), and are copied from
    // the log into the file (after 64 MiB) once for many commits.
    database.exec('PRAGMA cache_size = -65536; PRAGMA wal_autocheckpoint = 16384');
    database.exec('PRAGMA journal_size_limit = 67108864');
    const mode = pragma(database, 'journal_mode');
    const level = pragma(database, 'synchronous');
    if (mode !== 'wal' || level !== 2)
      throw new UsageError(`${file}: needs journal_mode wal and synchronous FULL, has ${mode} and ${level}`);
    migrate(database, file);
  } catch (error) {
    database.close();
    throw error;
  }
  return database;
}

/** Opens a database that is there, to read it beside whoever writes it. */
export function openForReading(file: string): DatabaseSync {
  if (!existsSync(file)) throw new UsageError(`there is no ledger ${file}`);
  const database = reading(() => new DatabaseSync(file, { readOnly: true, timeout: 5000 }));
  try {
    const found = versionOf(database, file);
    if (found !== steps.length)
      throw new UsageError(
        `${file} has schema version ${found}, this program reads ${steps.length}: ${mend(found)}`,
      );
    return database;
  } catch (error) {
    database.close();
    throw resultCode(error) === notADatabase
      ? new UsageError(`${file} is no SQLite database`)
      : databaseFailure(error);
  }
}

const mend = (found: number): string =>
  found < steps.length
    ? 'start the audit service on it once, which brings it forward'
    : 'use a newer program';

const versionOf = (database: DatabaseSync, file: string): number => {
  const found = pragma(database, 'user_version');
  if (typeof found !== 'number') throw new UsageError(`${file} has no schema version`);
  return found;
};

function migrate(database: DatabaseSync, file: string): void {
  const found = versionOf(database, file);
  if (found > steps.length)
    throw new UsageError(
      `${file} has schema version ${found}, this program knows ${steps.length}: use a newer one`,
    );
  // Each step is whole or not at all: a crash in between is gone on with.
  for (const [index, step] of steps.entries())
    if (index >= found)
      inTransaction(database, () => {
        step(database);
        database.exec(`PRAGMA user_version = ${index + 1}`);
      });
}

function pragma(database: DatabaseSync, name: string): unknown {
  return Object.values(database.prepare(`PRAGMA ${name}`).get() ?? {})[0];
}

/** Null while another process writes this ledger: two writers would fork it. Readers of the ledger are not in its way. */
export function lockForWriting(file: string): ProcessLock | null {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  return reading(() => holdLock(`${file}.lock`));
}

/** All of `action` or nothing. Throws OperationalError LEDGER_UNAVAILABLE for what can pass; the rest is a bug. */
export function inTransaction<T>(database: DatabaseSync, action: () => T): T {
  try {
    database.exec('BEGIN IMMEDIATE');
    const result = action();
    database.exec('COMMIT');
    return result;
  } catch (error) {
    rollBack(database);
    throw databaseFailure(error);
  }
}

/** The same for what a loss of power may take back, since it is only done again then: without waiting for the disk. */
export function inLooseTransaction(database: DatabaseSync, action: () => void): void {
  database.exec('PRAGMA synchronous = NORMAL');
  try {
    inTransaction(database, action);
  } finally {
    database.exec('PRAGMA synchronous = FULL');
  }
}

/** Reads, with failures told apart as in a transaction. */
export function reading<T>(action: () => T): T {
  try {
    return action();
  } catch (error) {
    throw databaseFailure(error);
  }
}

/** The same for many queries: as one transaction they take and give back the file's locks once, not each for itself. */
export function readingMuch<T>(database: DatabaseSync, action: () => T): T {
  return reading(() => {
    database.exec('BEGIN');
    try {
      return action();
    } finally {
      database.exec('COMMIT');
    }
  });
}

/** A full disk has rolled back already, and then another roll-back would be a fault. */
function rollBack(database: DatabaseSync): void {
  if (!database.isOpen || !database.isTransaction) return;
  try {
    database.exec('ROLLBACK');
  } catch {
    // The failure that led here is the one to tell.
  }
}

function databaseFailure(error: unknown): unknown {
  if (resultCode(error) === corrupt)
    return new UsageError(`the ledger's database is damaged (${messageOf(error)}): restore a backup`, 1);
  const hint = passing.get(resultCode(error));
  if (hint === undefined) return error;
  const message = `the ledger's database: ${messageOf(error)}; ${hint}`;
  return new OperationalError('LEDGER_UNAVAILABLE', message, { cause: error });
}

/** The primary result code of a SQLite error; 0 for any other error. */
function resultCode(error: unknown): number {
  const code = error instanceof Error && 'errcode' in error ? error.errcode : 0;
  return typeof code === 'number' ? code & 0xff : 0;
}
