/** How the tables came to be what they are: step n brings them from version n to n + 1. Steps are never changed. */
import { UsageError } from '../../platform/errors.ts';
import type { Queryable } from './connection.ts';
import { change, query, schema } from './connection.ts';

/** As SQLite has them, see ../sqlite/schema.ts and migrations.ts; and the epoch of the writer. */
const firstTables = `
CREATE TABLE record (
  sequence bigint PRIMARY KEY,
  tenant text COLLATE "C" NOT NULL,
  tenant_sequence bigint NOT NULL,
  job_id text COLLATE "C" NOT NULL,
  kind text COLLATE "C" NOT NULL,
  recorded_at bigint NOT NULL,
  subject text COLLATE "C" NOT NULL,
  event_id text COLLATE "C" NOT NULL UNIQUE,
  signer text COLLATE "C" NOT NULL,
  signature bytea,
  traceparent text COLLATE "C",
  stream text COLLATE "C" NOT NULL,
  stream_epoch bigint NOT NULL,
  stream_sequence bigint NOT NULL,
  payload bytea,
  payload_salt bytea NOT NULL,
  payload_hash bytea NOT NULL,
  previous_leaf_hash bytea NOT NULL,
  leaf_hash bytea NOT NULL,
  UNIQUE (stream, stream_epoch, stream_sequence),
  UNIQUE (tenant, tenant_sequence)
);
CREATE INDEX record_of_job ON record (tenant, job_id, tenant_sequence);

CREATE TABLE duplicate (
  stream text COLLATE "C" NOT NULL,
  stream_epoch bigint NOT NULL,
  stream_sequence bigint NOT NULL,
  sequence bigint NOT NULL REFERENCES record,
  payload bytea,
  PRIMARY KEY (stream, stream_epoch, stream_sequence)
);
CREATE INDEX duplicate_of_record ON duplicate (sequence);

CREATE TABLE stream (name text COLLATE "C" PRIMARY KEY, epoch bigint NOT NULL);

CREATE TABLE job (
  tenant text COLLATE "C" NOT NULL,
  job_id text COLLATE "C" NOT NULL,
  first_sequence bigint NOT NULL,
  last_leaf_hash bytea NOT NULL,
  terminal_sequence bigint,
  state text COLLATE "C",
  plugin text COLLATE "C",
  plugin_sha256 text COLLATE "C",
  key_ids text COLLATE "C" NOT NULL,
  runtime text COLLATE "C",
  outcome text COLLATE "C",
  reason text COLLATE "C",
  submitted_at_ms bigint,
  updated_at_ms bigint NOT NULL,
  trace_id text COLLATE "C",
  PRIMARY KEY (tenant, job_id)
);
CREATE INDEX job_by_age ON job (tenant, first_sequence);
CREATE UNIQUE INDEX job_by_sequence ON job (first_sequence);
CREATE INDEX job_by_time ON job (submitted_at_ms, first_sequence);
CREATE INDEX job_of_plugin ON job (plugin_sha256, first_sequence);
CREATE INDEX job_of_plugin_name ON job (plugin, first_sequence);
CREATE INDEX job_of_outcome ON job (outcome, first_sequence);
CREATE INDEX job_of_trace ON job (trace_id);

CREATE TABLE job_key (
  key_id text COLLATE "C" NOT NULL,
  first_sequence bigint NOT NULL,
  PRIMARY KEY (key_id, first_sequence)
);

CREATE TABLE subtree (
  level bigint NOT NULL,
  number bigint NOT NULL,
  hash bytea NOT NULL,
  PRIMARY KEY (level, number)
);

CREATE TABLE checkpoint (
  tree_size bigint PRIMARY KEY,
  root_hash bytea NOT NULL,
  signed_at bigint NOT NULL,
  note bytea NOT NULL
);

CREATE TABLE deletion (
  stream text COLLATE "C" NOT NULL,
  stream_sequence bigint NOT NULL,
  awaits text COLLATE "C",
  PRIMARY KEY (stream, stream_sequence)
);

CREATE TABLE feed (
  id bigint PRIMARY KEY CHECK (id = 0),
  ledger_sequence bigint NOT NULL,
  stream_sequence bigint NOT NULL
);

CREATE TABLE erased (id bigint PRIMARY KEY CHECK (id = 0), sequence bigint NOT NULL);

CREATE TABLE span (
  trace_id text COLLATE "C" NOT NULL,
  span_id text COLLATE "C" NOT NULL,
  parent_span_id text COLLATE "C",
  service text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  kind bigint NOT NULL,
  start_micros bigint NOT NULL,
  end_micros bigint NOT NULL,
  status text COLLATE "C" NOT NULL,
  status_message text COLLATE "C",
  attributes text COLLATE "C" NOT NULL,
  links text COLLATE "C" NOT NULL,
  PRIMARY KEY (trace_id, span_id)
);
CREATE INDEX span_by_end ON span (end_micros);

-- Raised by each writer that takes over; a transaction of another epoch is refused.
CREATE TABLE writer (id bigint PRIMARY KEY CHECK (id = 0), epoch bigint NOT NULL);
INSERT INTO writer VALUES (0, 0);
`;

const steps: readonly string[] = [firstTables];

/** Makes or brings forward the tables. Only for whoever holds the writer's lock. Throws UsageError. */
export async function migrate(to: Queryable): Promise<void> {
  await change(to, `CREATE SCHEMA IF NOT EXISTS ${schema}`);
  await change(
    to,
    'CREATE TABLE IF NOT EXISTS ledger_version (id bigint PRIMARY KEY CHECK (id = 0), version bigint NOT NULL)',
  );
  const found = await versionOf(to);
  if (found > steps.length) throw wrongVersion(found);
  for (const [index, step] of steps.entries())
    if (index >= found)
      // The simple protocol takes several statements, and takes them as one transaction.
      await change(
        to,
        `BEGIN; ${step}; INSERT INTO ledger_version VALUES (0, ${index + 1})
          ON CONFLICT (id) DO UPDATE SET version = excluded.version; COMMIT`,
      );
}

/** Throws UsageError when the tables are not those that this program reads. */
export async function checkVersion(to: Queryable): Promise<void> {
  const [there] = await query(to, `SELECT to_regclass('${schema}.ledger_version') IS NOT NULL AS is`);
  if (there?.is !== true)
    throw new UsageError('there is no ledger in this database: start the audit service on it once');
  const found = await versionOf(to);
  if (found !== steps.length) throw wrongVersion(found);
}

async function versionOf(to: Queryable): Promise<number> {
  const [row] = await query(to, 'SELECT version FROM ledger_version');
  return Number(row?.version ?? 0);
}

const wrongVersion = (found: number): UsageError =>
  new UsageError(
    `the ledger in PostgreSQL has schema version ${found}, this program knows ${steps.length}: ` +
      (found < steps.length
        ? 'start the audit service on it once, which brings it forward'
        : 'use a newer program'),
  );
