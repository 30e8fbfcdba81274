/** Reading a ledger in PostgreSQL. Each method is one query. */
import type pg from 'pg';
import type { AuditRecord } from '../../platform/codec.ts';
import type { JobRef } from '../../platform/topology.ts';
import { checkpointColumns, headSql, jobColumns, jobsQuery, recordColumns, spanColumns } from '../columns.ts';
import type { Row } from '../rows.ts';
import { headOf, jobOf, recordOf, spanOf } from '../rows.ts';
import type {
  Head,
  JobFilter,
  JobPage,
  JobRow,
  LedgerReader,
  PageLimit,
  StoredCheckpoint,
  StoredLevel,
  StoredSpan,
  Subtree,
} from '../store.ts';
import type { Value } from './connection.ts';
import { query } from './connection.ts';

export class PostgresReader implements LedgerReader {
  protected readonly pool: pg.Pool;

  constructor(pool: pg.Pool) {
    this.pool = pool;
  }

  async head(): Promise<Head> {
    const [last] = await this.#query(headSql);
    return headOf(last);
  }

  records(from: number, limit: PageLimit): Promise<AuditRecord[]> {
    return this.#page('sequence >= $3', 'sequence', limit, [from]);
  }

  async recordsAt(sequences: readonly number[]): Promise<AuditRecord[]> {
    const rows = await this.#query(
      `SELECT ${recordColumns} FROM record WHERE sequence = ANY($1::bigint[]) ORDER BY sequence`,
      sequences,
    );
    return rows.map(recordOf);
  }

  recordsOfTenant(tenant: string, after: number, limit: PageLimit): Promise<AuditRecord[]> {
    return this.#page('tenant = $3 AND tenant_sequence > $4', 'tenant_sequence', limit, [tenant, after]);
  }

  recordsOfJob({ tenant, jobId }: JobRef, after: number, limit: PageLimit): Promise<AuditRecord[]> {
    const where = 'tenant = $3 AND job_id = $4 AND tenant_sequence > $5';
    return this.#page(where, 'tenant_sequence', limit, [tenant, jobId, after]);
  }

  /** Sizes are summed up before any payload is read, so that a page is never more than it may be. */
  async #page(where: string, order: string, limit: PageLimit, values: Value[]): Promise<AuditRecord[]> {
    const rows = await this.#query(
      `SELECT ${recordColumns} FROM (
        SELECT *, sum(size) OVER (ORDER BY ${order} ROWS UNBOUNDED PRECEDING) - size AS before FROM (
          SELECT *, coalesce(octet_length(payload), 0) AS size FROM record WHERE ${where} ORDER BY ${order} LIMIT $1
        ) AS sized
      ) AS page WHERE before < greatest($2::bigint, 1) ORDER BY ${order}`,
      ...[limit.records, limit.bytes, ...values],
    );
    return rows.map(recordOf);
  }

  async hashes(level: 0 | StoredLevel, from: number, count: number): Promise<Uint8Array[]> {
    const rows =
      level === 0
        ? await this.#query(
            'SELECT leaf_hash AS hash FROM record WHERE sequence >= $1 AND sequence < $2 ORDER BY sequence',
            ...[from, from + count],
          )
        : await this.#query(
            'SELECT hash FROM subtree WHERE level = $1 AND number >= $2 AND number < $3 ORDER BY number',
            ...[level, from, from + count],
          );
    return rows.map((row) => row.hash as Uint8Array);
  }

  async subtrees(level: StoredLevel, from: number, limit: number): Promise<Subtree[]> {
    const sql =
      'SELECT level, number, hash FROM subtree WHERE level = $1 AND number >= $2 ORDER BY number LIMIT $3';
    return (await this.#query(sql, level, from, limit)) as unknown as Subtree[];
  }

  async job({ tenant, jobId }: JobRef): Promise<JobRow | null> {
    const sql = `SELECT ${jobColumns} FROM job WHERE tenant = $1 AND job_id = $2`;
    const [row] = await this.#query(sql, tenant, jobId);
    return row === undefined ? null : jobOf(row);
  }

  async jobs(filter: JobFilter, page: JobPage): Promise<JobRow[]> {
    const { sql, values } = jobsQuery(filter, page, (number) => `$${number}`);
    return (await this.#query(sql, ...values)).map(jobOf);
  }

  async spansOfTrace(traceId: string, limit: number): Promise<StoredSpan[]> {
    const sql = `SELECT ${spanColumns} FROM span WHERE trace_id = $1 ORDER BY start_micros, span_id LIMIT $2`;
    return (await this.#query(sql, traceId, limit)).map(spanOf);
  }

  async newestCheckpoint(): Promise<StoredCheckpoint | null> {
    const sql = `SELECT ${checkpointColumns} FROM checkpoint ORDER BY tree_size DESC LIMIT 1`;
    const [row] = await this.#query(sql);
    return row === undefined ? null : (row as unknown as StoredCheckpoint);
  }

  async checkpoints(fromSize: number, limit: number): Promise<StoredCheckpoint[]> {
    const sql = `SELECT ${checkpointColumns} FROM checkpoint WHERE tree_size >= $1 ORDER BY tree_size LIMIT $2`;
    return (await this.#query(sql, fromSize, limit)) as unknown as StoredCheckpoint[];
  }

  #query(sql: string, ...values: Value[]): Promise<Row[]> {
    return query(this.pool, sql, values);
  }

  async close(): Promise<void> {
    await this.pool.end();
  }
}
