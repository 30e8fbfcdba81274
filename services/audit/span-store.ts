/** Rows of the span table. */
import type { DatabaseSync } from 'node:sqlite';
import { inTransaction, reading } from './database.ts';
import type { StoredSpan } from './spans.ts';

interface SpanRow extends Omit<StoredSpan, 'attributes' | 'links'> {
  readonly attributes: string;
  readonly links: string;
}

export class SpanStore {
  readonly #database: DatabaseSync;
  readonly #statements: ReturnType<typeof prepare>;

  constructor(database: DatabaseSync) {
    this.#database = database;
    this.#statements = prepare(database);
  }

  /** Commits the spans; one that is there already stays as it is. */
  add(spans: readonly StoredSpan[]): void {
    inTransaction(this.#database, () => {
      for (const span of spans) this.#insert(span);
    });
  }

  #insert(span: StoredSpan): void {
    const {
      traceId,
      spanId,
      parentSpanId,
      service,
      name,
      kind,
      startMicros,
      endMicros,
      status,
      statusMessage,
    } = span;
    this.#statements.insert.run(
      ...[traceId, spanId, parentSpanId, service, name, kind, startMicros, endMicros, status, statusMessage],
      ...[JSON.stringify(span.attributes), JSON.stringify(span.links)],
    );
  }

  /** By start, at most `limit`. */
  ofTrace(traceId: string, limit: number): StoredSpan[] {
    const rows = reading(() => this.#statements.ofTrace.all(traceId, limit)) as unknown as SpanRow[];
    return rows.map((row) => ({
      ...row,
      attributes: JSON.parse(row.attributes),
      links: JSON.parse(row.links),
    }));
  }
}

function prepare(database: DatabaseSync) {
  return {
    insert: database.prepare('INSERT OR IGNORE INTO span VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)'),
    ofTrace:
      database.prepare(`SELECT trace_id AS traceId, span_id AS spanId, parent_span_id AS parentSpanId, service,
      name, kind, start_micros AS startMicros, end_micros AS endMicros, status, status_message AS statusMessage,
      attributes, links FROM span WHERE trace_id = ? ORDER BY start_micros, span_id LIMIT ?`),
  };
}
