/** How rows are named in SQL, the same in both stores: what a query gives has the fields of the types in store.ts. */
import type { JobFilter, JobPage } from './store.ts';

export const recordColumns = `sequence, tenant_sequence AS "tenantSequence", recorded_at AS "recordedAt", tenant,
  job_id AS "jobId", kind, subject, event_id AS "eventId", signer, signature, traceparent, stream,
  stream_sequence AS "streamSequence", payload, payload_salt AS "payloadSalt", payload_hash AS "payloadHash",
  previous_leaf_hash AS "previousLeafHash", leaf_hash AS "leafHash"`;

/** `keyIds` comes as JSON. */
export const jobColumns = `tenant, job_id AS "jobId", first_sequence AS "firstSequence",
  last_leaf_hash AS "lastLeafHash", terminal_sequence AS "terminalSequence", state, plugin,
  plugin_sha256 AS "pluginSha256", key_ids AS "keyIds", runtime, outcome, reason,
  submitted_at_ms AS "submittedAtMs", updated_at_ms AS "updatedAtMs", trace_id AS "traceId"`;

/** `attributes` and `links` come as JSON. */
export const spanColumns = `trace_id AS "traceId", span_id AS "spanId", parent_span_id AS "parentSpanId", service, name,
  kind, start_micros AS "startMicros", end_micros AS "endMicros", status, status_message AS "statusMessage",
  attributes, links`;

export const headSql =
  'SELECT sequence, leaf_hash AS "leafHash", recorded_at AS "recordedAt" FROM record ORDER BY sequence DESC LIMIT 1';

export const checkpointColumns = 'tree_size AS "treeSize", root_hash AS "rootHash", signed_at AS at, note';

/** Columns of a table in the order in which both stores write them. */
export const written = {
  record: [
    ...['sequence', 'tenant', 'tenant_sequence', 'job_id', 'kind', 'recorded_at', 'subject', 'event_id'],
    ...['signer', 'signature', 'traceparent', 'stream', 'stream_epoch', 'stream_sequence', 'payload'],
    ...['payload_salt', 'payload_hash', 'previous_leaf_hash', 'leaf_hash'],
  ],
  job: [
    ...['tenant', 'job_id', 'first_sequence', 'last_leaf_hash', 'terminal_sequence', 'state', 'plugin'],
    ...['plugin_sha256', 'key_ids', 'runtime', 'outcome', 'reason', 'submitted_at_ms', 'updated_at_ms'],
    'trace_id',
  ],
  span: [
    ...['trace_id', 'span_id', 'parent_span_id', 'service', 'name', 'kind', 'start_micros', 'end_micros'],
    ...['status', 'status_message', 'attributes', 'links'],
  ],
} as const;

/** Of a job, what most of its events change. None of it is in an index. */
export const jobProgress = [
  'last_leaf_hash',
  'terminal_sequence',
  'state',
  'runtime',
  'reason',
  'updated_at_ms',
] as const;

/** What most of the others change besides. The indexes of these are written in the order of jobs; that of traces is not. */
export const jobMore = [...jobProgress, 'plugin', 'plugin_sha256', 'key_ids', 'outcome'] as const;

/** What identifies a job, and what never changes of it. */
const fixedOfJob: readonly string[] = ['tenant', 'job_id', 'first_sequence'];
export const jobUpdate = written.job
  .filter((column) => !fixedOfJob.includes(column))
  .map((column) => `${column} = excluded.${column}`)
  .join(', ');

type Value = string | number;

/** A filter as SQL. Conditions are the constants below, and every value is a parameter. */
export function jobsQuery(
  filter: JobFilter,
  page: JobPage,
  parameter: (number: number) => string,
): { readonly sql: string; readonly values: readonly Value[] } {
  const values: Value[] = [];
  const conditions = ['state IS NOT NULL'];
  for (const [name, condition] of jobConditions) {
    const value = { ...filter, before: page.before }[name];
    if (value !== undefined) conditions.push(condition(parameter(values.push(value))));
  }
  const limit = parameter(values.push(page.limit));
  const where = conditions.join(' AND ');
  return {
    sql: `SELECT ${jobColumns} FROM job WHERE ${where} ORDER BY first_sequence DESC LIMIT ${limit}`,
    values,
  };
}

const extreme = (which: 'min' | 'max', where: string) =>
  `(SELECT ${which}(first_sequence) FROM job WHERE ${where})`;

const jobConditions: [name: keyof JobFilter | 'before', condition: (parameter: string) => string][] = [
  ['tenant', (p) => `tenant = ${p}`],
  // Almost in the order of time, so what lies outside is not looked at; without a job in the time, nothing is.
  [
    'since',
    (p) => `submitted_at_ms >= ${p} AND first_sequence >= ${extreme('min', `submitted_at_ms >= ${p}`)}`,
  ],
  [
    'until',
    (p) => `submitted_at_ms < ${p} AND first_sequence <= ${extreme('max', `submitted_at_ms < ${p}`)}`,
  ],
  ['state', (p) => `state = ${p}`],
  ['outcome', (p) => `outcome = ${p}`],
  ['runtime', (p) => `runtime = ${p}`],
  ['keyId', (p) => `first_sequence IN (SELECT first_sequence FROM job_key WHERE key_id = ${p})`],
  ['plugin', (p) => `plugin = ${p}`],
  ['pluginSha256', (p) => `plugin_sha256 = ${p}`],
  ['before', (p) => `first_sequence < ${p}`],
];

/** Of a record: true while its payload may not fall to age, because its job has not ended. */
export const ofOpenJob = `EXISTS (SELECT 1 FROM job WHERE job.tenant = record.tenant AND job.job_id = record.job_id
  AND job.state IS NOT NULL AND job.terminal_sequence IS NULL)`;
