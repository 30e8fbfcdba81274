/**
 * Erasing payloads. The hashes stay, so every proof does. What is erased is overwritten in the file, and in the
 * write-ahead log at once, not whenever SQLite needs the room.
 */
import type { DatabaseSync } from 'node:sqlite';
import type { JobRef } from '../../platform/topology.ts';
import { ofOpenJob } from '../columns.ts';
import { inTransaction } from './database.ts';

export class Erasure {
  readonly #database: DatabaseSync;

  constructor(database: DatabaseSync) {
    this.#database = database;
  }

  /** Returns how many records had a payload. */
  job({ tenant, jobId }: JobRef): number {
    return this.#overwriting(() => this.#erase('tenant = ? AND job_id = ?', tenant, jobId));
  }

  /** Oldest first. Remembers up to where nothing is left to erase, so that it does not look there again. */
  before(recordedBefore: number, limit: number): number {
    return this.#overwriting(() => {
      const mark = this.#number('SELECT sequence AS n FROM erased') ?? 0;
      const falls = `sequence >= ? AND payload IS NOT NULL AND NOT ${ofOpenJob}`;
      const last = this.#number(
        `SELECT max(sequence) AS n FROM (SELECT sequence FROM record WHERE ${falls} AND recorded_at < ?
          ORDER BY sequence LIMIT ?)`,
        ...[mark, recordedBefore, limit],
      );
      if (last === null) return 0;
      const count = this.#erase(`${falls} AND sequence <= ?`, mark, last);
      const kept = this.#number(
        'SELECT min(sequence) AS n FROM record WHERE sequence >= ? AND sequence <= ? AND payload IS NOT NULL',
        ...[mark, last],
      );
      this.#database.prepare('INSERT OR REPLACE INTO erased VALUES (0, ?)').run(kept ?? last + 1);
      return count;
    });
  }

  #erase(which: string, ...values: (string | number)[]): number {
    const repeated = `UPDATE duplicate SET payload = NULL WHERE sequence IN (SELECT sequence FROM record WHERE ${which})`;
    this.#database.prepare(repeated).run(...values);
    const erased = `UPDATE record SET payload = NULL, payload_salt = x'' WHERE payload IS NOT NULL AND ${which}`;
    return Number(this.#database.prepare(erased).run(...values).changes);
  }

  #number(sql: string, ...values: number[]): number | null {
    return (this.#database.prepare(sql).get(...values)?.n ?? null) as number | null;
  }

  #overwriting(action: () => number): number {
    this.#database.exec('PRAGMA secure_delete = ON');
    try {
      const count = inTransaction(this.#database, action);
      if (count > 0) this.#database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
      return count;
    } finally {
      this.#database.exec('PRAGMA secure_delete = OFF');
    }
  }
}
