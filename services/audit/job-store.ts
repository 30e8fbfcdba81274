/** Rows of the job table. */
import type { DatabaseSync } from 'node:sqlite';
import type { JobRef } from '../platform/topology.ts';
import type { JobRow } from './projection.ts';

const columns = `tenant, job_id AS jobId, first_sequence AS firstSequence, last_leaf_hash AS lastLeafHash,
  terminal_sequence AS terminalSequence, state, plugin, runtime, outcome, reason,
  submitted_at_ms AS submittedAtMs, updated_at_ms AS updatedAtMs, trace_id AS traceId`;

export class JobStore {
  readonly #statements: ReturnType<typeof prepare>;

  constructor(database: DatabaseSync) {
    this.#statements = prepare(database);
  }

  read(job: JobRef): JobRow | null {
    const found = this.#statements.read.get(job.tenant, job.jobId) as unknown as JobRow | undefined;
    return found ?? null;
  }

  write(job: JobRow): void {
    const { tenant, jobId, firstSequence, lastLeafHash, terminalSequence, state, plugin, runtime } = job;
    const { outcome, reason, submittedAtMs, updatedAtMs, traceId } = job;
    this.#statements.write.run(
      ...[tenant, jobId, firstSequence, lastLeafHash, terminalSequence, state, plugin, runtime],
      ...[outcome, reason, submittedAtMs, updatedAtMs, traceId],
    );
  }

  /** Newest first; only jobs that were submitted. */
  newest(tenant: string): Iterable<JobRow> {
    return this.#statements.newest.iterate(tenant) as Iterable<unknown> as Iterable<JobRow>;
  }

  /** True when a job of somebody else uses this trace id. */
  isForeignTrace(traceId: string, tenant: string): boolean {
    return this.#statements.foreignTrace.get(traceId, tenant) !== undefined;
  }
}

function prepare(database: DatabaseSync) {
  return {
    read: database.prepare(`SELECT ${columns} FROM job WHERE tenant = ? AND job_id = ?`),
    write: database.prepare(
      'INSERT OR REPLACE INTO job (tenant, job_id, first_sequence, last_leaf_hash, terminal_sequence, state, plugin,' +
        ' runtime, outcome, reason, submitted_at_ms, updated_at_ms, trace_id) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)',
    ),
    newest: database.prepare(
      `SELECT ${columns} FROM job WHERE tenant = ? AND state IS NOT NULL ORDER BY first_sequence DESC`,
    ),
    foreignTrace: database.prepare('SELECT 1 FROM job WHERE trace_id = ? AND tenant <> ? LIMIT 1'),
  };
}
