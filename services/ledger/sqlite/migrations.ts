/** How a database came to be what it is: step n brings it from version n to n + 1. Steps are never changed. */
import type { DatabaseSync } from 'node:sqlite';
import { decodeAs } from '../../platform/codec.ts';
import { CompactRange } from '../tlog/compact-range.ts';
import { firstTables } from './schema.ts';

const secondTables = `
ALTER TABLE job ADD COLUMN plugin_sha256 TEXT;
-- Keys whose signatures were accepted, as a JSON array.
ALTER TABLE job ADD COLUMN key_ids TEXT NOT NULL DEFAULT '[]';
CREATE TABLE job_key (
  key_id TEXT NOT NULL,
  first_sequence INTEGER NOT NULL,
  PRIMARY KEY (key_id, first_sequence)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX job_by_sequence ON job (first_sequence);
CREATE INDEX job_by_time ON job (submitted_at_ms, first_sequence);
CREATE INDEX job_of_plugin ON job (plugin_sha256, first_sequence);
CREATE INDEX job_of_plugin_name ON job (plugin, first_sequence);
CREATE INDEX job_of_outcome ON job (outcome, first_sequence);

-- Complete subtrees of 2^8, 2^16 and 2^24 leaves, so that a proof reads few hashes.
CREATE TABLE subtree (
  level INTEGER NOT NULL,
  number INTEGER NOT NULL,
  hash BLOB NOT NULL,
  PRIMARY KEY (level, number)
) STRICT, WITHOUT ROWID;

-- Signed statements of the tree, as they were published.
CREATE TABLE checkpoint (
  tree_size INTEGER PRIMARY KEY,
  root_hash BLOB NOT NULL,
  signed_at INTEGER NOT NULL,
  note BLOB NOT NULL
) STRICT;

-- Records before this one have lost their payload to age, or will never lose it.
CREATE TABLE erased (id INTEGER PRIMARY KEY CHECK (id = 0), sequence INTEGER NOT NULL) STRICT;

-- Rows in the order in which they come: trace ids are random, and rows that lie by them would change a page each.
CREATE TABLE span_in_order (
  trace_id TEXT NOT NULL,
  span_id TEXT NOT NULL,
  parent_span_id TEXT,
  service TEXT NOT NULL,
  name TEXT NOT NULL,
  kind INTEGER NOT NULL,
  start_micros INTEGER NOT NULL,
  end_micros INTEGER NOT NULL,
  status TEXT NOT NULL,
  status_message TEXT,
  attributes TEXT NOT NULL,
  links TEXT NOT NULL,
  UNIQUE (trace_id, span_id)
) STRICT;
INSERT INTO span_in_order SELECT * FROM span;
DROP TABLE span;
ALTER TABLE span_in_order RENAME TO span;
CREATE INDEX span_by_end ON span (end_micros);
`;

type Step = (database: DatabaseSync) => void;

export const steps: readonly Step[] = [
  (database) => database.exec(firstTables),
  (database) => {
    database.exec(secondTables);
    addSubtrees(database);
    addKeysOfJobs(database);
  },
];

function addSubtrees(database: DatabaseSync): void {
  const insert = database.prepare('INSERT INTO subtree VALUES (?, ?, ?)');
  const tree = CompactRange.empty();
  for (const row of database.prepare('SELECT leaf_hash AS hash FROM record ORDER BY sequence').iterate())
    tree.append(row.hash as Uint8Array, (level, number, hash) => void insert.run(level, number, hash));
}

/** What JobVerified says has columns of its own now. */
function addKeysOfJobs(database: DatabaseSync): void {
  const jobs =
    database.prepare(`SELECT j.tenant, j.job_id AS jobId, j.first_sequence AS firstSequence, r.payload
    FROM record r JOIN job j ON j.tenant = r.tenant AND j.job_id = r.job_id
    WHERE r.kind = 'verified' AND r.payload IS NOT NULL ORDER BY r.sequence DESC`);
  const update = database.prepare(
    'UPDATE job SET plugin_sha256 = ?, key_ids = ? WHERE tenant = ? AND job_id = ?',
  );
  const insert = database.prepare('INSERT OR IGNORE INTO job_key VALUES (?, ?)');
  for (const row of jobs.all()) {
    const event = verifiedIn(row.payload as Uint8Array);
    if (event === null || event.tenant !== row.tenant || event.jobId !== row.jobId) continue;
    update.run(event.plugin.sha256, JSON.stringify(event.keyIds), row.tenant as string, row.jobId as string);
    for (const key of event.keyIds) insert.run(key, row.firstSequence as number);
  }
}

function verifiedIn(payload: Uint8Array) {
  try {
    return decodeAs('JobVerified', payload);
  } catch {
    return null;
  }
}
