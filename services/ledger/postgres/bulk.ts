/** Many rows in one statement: a column is one parameter, an array. So the text is always the same, and so is its plan. */
import { jobUpdate, written } from '../columns.ts';
import type { Cell } from '../rows.ts';
import { jobCells, recordCells, spanCells } from '../rows.ts';
import type { Deletion, Duplicate, JobRow, NewRecord, StoredSpan, Subtree } from '../store.ts';
import type { Queryable } from './connection.ts';
import { change } from './connection.ts';

/** What one statement may carry: a parameter is text twice as long as its bytes, and PostgreSQL takes 1 GiB. */
const mostBytes = 8 * 1024 * 1024;
const mostRows = 1024;

type Type = 'bigint' | 'text' | 'bytea';

const bytesColumns = new Set([
  ...['signature', 'payload', 'payload_salt', 'payload_hash', 'previous_leaf_hash', 'leaf_hash'],
  ...['last_leaf_hash', 'hash'],
]);
const numberColumns = new Set([
  ...['sequence', 'tenant_sequence', 'recorded_at', 'stream_epoch', 'stream_sequence', 'first_sequence'],
  ...['terminal_sequence', 'submitted_at_ms', 'updated_at_ms', 'kind', 'start_micros', 'end_micros'],
  ...['level', 'number'],
]);

interface Insert {
  readonly text: string;
}

function insert(table: string, columns: readonly string[], conflict = ''): Insert {
  const types = columns.map((column): Type => {
    // `kind` is a word in a record and a number in a span.
    if (bytesColumns.has(column)) return 'bytea';
    return numberColumns.has(column) && !(table === 'record' && column === 'kind') ? 'bigint' : 'text';
  });
  const arrays = types.map((type, index) => `$${index + 1}::${type}[]`).join(', ');
  return { text: `INSERT INTO ${table} (${columns.join(', ')}) SELECT * FROM unnest(${arrays}) ${conflict}` };
}

const placeColumns = ['stream', 'stream_epoch', 'stream_sequence'];
const inserts = {
  record: insert('record', written.record),
  job: insert('job', written.job, `ON CONFLICT (tenant, job_id) DO UPDATE SET ${jobUpdate}`),
  jobKey: insert('job_key', ['key_id', 'first_sequence'], 'ON CONFLICT DO NOTHING'),
  subtree: insert('subtree', ['level', 'number', 'hash']),
  duplicate: insert('duplicate', [...placeColumns, 'sequence', 'payload']),
  deletion: insert(
    'deletion',
    ['stream', 'stream_sequence', 'awaits'],
    `ON CONFLICT (stream, stream_sequence) DO UPDATE
      SET awaits = CASE WHEN excluded.awaits IS NULL THEN NULL ELSE deletion.awaits END`,
  ),
  span: insert('span', written.span, 'ON CONFLICT DO NOTHING'),
};

export const insertRecords = (to: Queryable, rows: readonly NewRecord[]) =>
  insertAll(to, inserts.record, rows.map(recordCells));
export const insertSubtrees = (to: Queryable, rows: readonly Subtree[]) =>
  insertAll(
    to,
    inserts.subtree,
    rows.map(({ level, number, hash }) => [level, number, hash]),
  );
export const insertDuplicates = (to: Queryable, rows: readonly Duplicate[]) =>
  insertAll(
    to,
    inserts.duplicate,
    rows.map(({ stream, epoch, sequence, of, payload }) => [stream, epoch, sequence, of, payload]),
  );
export const insertDeletions = (to: Queryable, rows: readonly Deletion[]) =>
  insertAll(
    to,
    inserts.deletion,
    rows.map(({ stream, sequence, awaits }) => [stream, sequence, awaits]),
  );
export const insertSpans = (to: Queryable, rows: readonly StoredSpan[]) =>
  insertAll(to, inserts.span, rows.map(spanCells));

export async function writeJobs(to: Queryable, jobs: readonly JobRow[]): Promise<void> {
  await insertAll(to, inserts.job, jobs.map(jobCells));
  const keys = jobs.flatMap(({ keyIds, firstSequence }) => keyIds.map((key) => [key, firstSequence]));
  await insertAll(to, inserts.jobKey, keys);
}

async function insertAll(to: Queryable, { text }: Insert, rows: readonly (readonly Cell[])[]): Promise<void> {
  for (const chunk of chunks(rows)) {
    const columns = (chunk[0] ?? []).map((_, index) => chunk.map((row) => row[index] ?? null));
    await change(to, text, columns);
  }
}

function* chunks(rows: readonly (readonly Cell[])[]): Iterable<(readonly Cell[])[]> {
  let chunk: (readonly Cell[])[] = [];
  let bytes = 0;
  for (const row of rows) {
    const size = row.reduce<number>((sum, cell) => sum + (cell instanceof Uint8Array ? cell.length : 0), 0);
    if (chunk.length > 0 && (chunk.length >= mostRows || bytes + size > mostBytes)) {
      yield chunk;
      [chunk, bytes] = [[], 0];
    }
    chunk.push(row);
    bytes += size;
  }
  if (chunk.length > 0) yield chunk;
}
