/** Reading a ledger in SQLite. Each method is one look at the database, whole and at once. */
import type { DatabaseSync } from 'node:sqlite';
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
import { reading } from './database.ts';

export class SqliteReader implements LedgerReader {
  /** The connection itself. */
  readonly database: DatabaseSync;
  readonly #statements: ReturnType<typeof prepare>;

  constructor(database: DatabaseSync) {
    this.database = database;
    this.#statements = prepare(database);
  }

  async head(): Promise<Head> {
    return reading(() => this.headNow());
  }

  protected headNow(): Head {
    return headOf(this.#statements.last.get());
  }

  async records(from: number, limit: PageLimit): Promise<AuditRecord[]> {
    return page(limit, () => this.#statements.from.iterate(from, limit.records));
  }

  async recordsAt(sequences: readonly number[]): Promise<AuditRecord[]> {
    const found = reading(() =>
      sequences.toSorted((a, b) => a - b).map((one) => this.#statements.at.get(one)),
    );
    return found.filter((row) => row !== undefined).map((row) => recordOf(row));
  }

  async recordsOfTenant(tenant: string, after: number, limit: PageLimit): Promise<AuditRecord[]> {
    return page(limit, () => this.#statements.ofTenant.iterate(tenant, after, limit.records));
  }

  async recordsOfJob({ tenant, jobId }: JobRef, after: number, limit: PageLimit): Promise<AuditRecord[]> {
    return page(limit, () => this.#statements.ofJob.iterate(tenant, jobId, after, limit.records));
  }

  async hashes(level: 0 | StoredLevel, from: number, count: number): Promise<Uint8Array[]> {
    const rows = reading(() =>
      level === 0
        ? this.#statements.leafHashes.all(from, from + count)
        : this.#statements.nodeHashes.all(level, from, from + count),
    );
    return rows.map((row) => row.hash as Uint8Array);
  }

  async subtrees(level: StoredLevel, from: number, limit: number): Promise<Subtree[]> {
    return reading(() => this.#statements.subtrees.all(level, from, limit)) as unknown as Subtree[];
  }

  async job({ tenant, jobId }: JobRef): Promise<JobRow | null> {
    return reading(() => this.jobNow(tenant, jobId));
  }

  protected jobNow(tenant: string, jobId: string): JobRow | null {
    const row = this.#statements.job.get(tenant, jobId);
    return row === undefined ? null : jobOf(row);
  }

  async jobs(filter: JobFilter, jobPage: JobPage): Promise<JobRow[]> {
    const { sql, values } = jobsQuery(filter, jobPage, (number) => `?${number}`);
    return reading(() => this.database.prepare(sql).all(...values)).map((row) => jobOf(row));
  }

  async spansOfTrace(traceId: string, limit: number): Promise<StoredSpan[]> {
    return reading(() => this.#statements.spans.all(traceId, limit)).map((row) => spanOf(row));
  }

  async newestCheckpoint(): Promise<StoredCheckpoint | null> {
    const row = reading(() => this.#statements.newestCheckpoint.get());
    return row === undefined ? null : (row as unknown as StoredCheckpoint);
  }

  async checkpoints(fromSize: number, limit: number): Promise<StoredCheckpoint[]> {
    return reading(() => this.#statements.checkpoints.all(fromSize, limit)) as unknown as StoredCheckpoint[];
  }

  async close(): Promise<void> {
    this.database.close();
  }
}

function prepare(database: DatabaseSync) {
  const records = (where: string, order: string) =>
    database.prepare(`SELECT ${recordColumns} FROM record WHERE ${where} ORDER BY ${order} LIMIT ?`);
  return {
    last: database.prepare(headSql),
    from: records('sequence >= ?', 'sequence'),
    at: database.prepare(`SELECT ${recordColumns} FROM record WHERE sequence = ?`),
    ofTenant: records('tenant = ? AND tenant_sequence > ?', 'tenant_sequence'),
    ofJob: records('tenant = ? AND job_id = ? AND tenant_sequence > ?', 'tenant_sequence'),
    leafHashes: database.prepare(
      'SELECT leaf_hash AS hash FROM record WHERE sequence >= ? AND sequence < ? ORDER BY sequence',
    ),
    nodeHashes: database.prepare(
      'SELECT hash FROM subtree WHERE level = ? AND number >= ? AND number < ? ORDER BY number',
    ),
    subtrees: database.prepare(
      'SELECT level, number, hash FROM subtree WHERE level = ? AND number >= ? ORDER BY number LIMIT ?',
    ),
    job: database.prepare(`SELECT ${jobColumns} FROM job WHERE tenant = ? AND job_id = ?`),
    spans: database.prepare(
      `SELECT ${spanColumns} FROM span WHERE trace_id = ? ORDER BY start_micros, span_id LIMIT ?`,
    ),
    newestCheckpoint: database.prepare(
      `SELECT ${checkpointColumns} FROM checkpoint ORDER BY tree_size DESC LIMIT 1`,
    ),
    checkpoints: database.prepare(
      `SELECT ${checkpointColumns} FROM checkpoint WHERE tree_size >= ? ORDER BY tree_size LIMIT ?`,
    ),
  };
}

/** Reads rows until the page is full. */
function page({ bytes }: PageLimit, rows: () => Iterable<Row>): AuditRecord[] {
  return reading(() => {
    const records: AuditRecord[] = [];
    let total = 0;
    for (const row of rows()) {
      const record = recordOf(row);
      records.push(record);
      total += record.payload?.length ?? 0;
      if (total >= bytes) break;
    }
    return records;
  });
}
