/** The tables of version 1, as the first ledgers were made. What came later: migrations.ts. */
export const firstTables = `
-- One row for each event, never changed but for erasure (payload NULL, payload_salt empty). All that the leaf is made of
-- is here, so leaf bytes can be made again from the row.
CREATE TABLE record (
  sequence INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  tenant_sequence INTEGER NOT NULL,
  job_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  recorded_at INTEGER NOT NULL,
  subject TEXT NOT NULL,
  event_id TEXT NOT NULL UNIQUE,
  signer TEXT NOT NULL,
  signature BLOB,
  traceparent TEXT,
  stream TEXT NOT NULL,
  stream_epoch INTEGER NOT NULL,
  stream_sequence INTEGER NOT NULL,
  payload BLOB,
  payload_salt BLOB NOT NULL,
  payload_hash BLOB NOT NULL,
  previous_leaf_hash BLOB NOT NULL,
  leaf_hash BLOB NOT NULL,
  UNIQUE (stream, stream_epoch, stream_sequence),
  UNIQUE (tenant, tenant_sequence)
) STRICT;
CREATE INDEX record_of_job ON record (tenant, job_id, tenant_sequence);

-- A message that carried an event again under the same id. Its bytes are kept where they differ.
CREATE TABLE duplicate (
  stream TEXT NOT NULL,
  stream_epoch INTEGER NOT NULL,
  stream_sequence INTEGER NOT NULL,
  sequence INTEGER NOT NULL REFERENCES record,
  payload BLOB,
  PRIMARY KEY (stream, stream_epoch, stream_sequence)
) STRICT, WITHOUT ROWID;
CREATE INDEX duplicate_of_record ON duplicate (sequence);

-- How often a stream was made anew, so that its sequences began again.
CREATE TABLE stream (name TEXT PRIMARY KEY, epoch INTEGER NOT NULL) STRICT;

-- What the records say about each job, kept in the same transaction. state is NULL while no valid submission is known.
CREATE TABLE job (
  tenant TEXT NOT NULL,
  job_id TEXT NOT NULL,
  first_sequence INTEGER NOT NULL,
  last_leaf_hash BLOB NOT NULL,
  terminal_sequence INTEGER,
  state TEXT,
  plugin TEXT,
  runtime TEXT,
  outcome TEXT,
  reason TEXT,
  submitted_at_ms INTEGER,
  updated_at_ms INTEGER NOT NULL,
  trace_id TEXT,
  PRIMARY KEY (tenant, job_id)
) STRICT;
CREATE INDEX job_by_age ON job (tenant, first_sequence);
CREATE INDEX job_of_trace ON job (trace_id);

-- Messages that may leave the bus; awaits is the consumer that must have acked the message first.
CREATE TABLE deletion (
  stream TEXT NOT NULL,
  stream_sequence INTEGER NOT NULL,
  awaits TEXT,
  PRIMARY KEY (stream, stream_sequence)
) STRICT, WITHOUT ROWID;

-- How far the feed had come at a quiet moment: needed only when the last message of AUDIT has expired.
CREATE TABLE feed (
  id INTEGER PRIMARY KEY CHECK (id = 0),
  ledger_sequence INTEGER NOT NULL,
  stream_sequence INTEGER NOT NULL
) STRICT;

CREATE TABLE span (
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
  PRIMARY KEY (trace_id, span_id)
) STRICT, WITHOUT ROWID;
`;
