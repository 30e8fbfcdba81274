/**
 * The rows of jobs, which `show`, `ps` and the query API read: each must be what the job's records say. They are not in the
 * tree; but everything in them follows from what is.
 */
import type { AuditRecord } from '../platform/codec.ts';
import type { JobRef } from '../platform/topology.ts';
import { jobKey } from './keys.ts';
import { afterRecord } from './projection.ts';
import type { JobRow, LedgerReader } from './store.ts';
import { sameHash } from './tlog/merkle.ts';
import type { Findings } from './verify-findings.ts';

const page = { records: 256, bytes: 4 * 1024 * 1024 };
const pageRows = 256;

/** Checks the rows of these jobs, by what is recorded before `size`; and that there are no others, if these are `all`. */
export async function checkJobs(
  reader: LedgerReader,
  findings: Findings,
  jobs: ReadonlySet<string>,
  { size, all }: { readonly size: number; readonly all: boolean },
): Promise<void> {
  for (const key of jobs) await checkJob(reader, findings, jobOfKey(key), size);
  if (!all) return;
  for (let before: number | undefined, rows: JobRow[] = []; ; ) {
    rows = await reader.jobs({}, { limit: pageRows, ...(before === undefined ? {} : { before }) });
    for (const row of rows)
      if (row.firstSequence < size && !jobs.has(jobKey(row)))
        findings.add('job', row.firstSequence, `there is a row of job ${jobKey(row)} and no record of it`);
    before = rows.at(-1)?.firstSequence;
    if (before === undefined) return;
  }
}

/** No tenant has a dot in its name. */
function jobOfKey(key: string): JobRef {
  const dot = key.indexOf('.');
  return { tenant: key.slice(0, dot), jobId: key.slice(dot + 1) };
}

async function checkJob(reader: LedgerReader, findings: Findings, job: JobRef, size: number): Promise<void> {
  // The row first: a service that goes on writing then only adds records that it does not know of yet.
  const row = await reader.job(job);
  const records = await recordsOf(reader, job);
  const first = records[0]?.sequence ?? row?.firstSequence ?? 0;
  const fault = row === null ? 'is missing' : rowFault(row, records, size);
  if (fault !== null) findings.add('job', first, `the row of job ${jobKey(job)} ${fault}`);
}

function rowFault(row: JobRow, records: readonly AuditRecord[], size: number): string | null {
  const last = records.findIndex(({ leafHash }) => sameHash(leafHash, row.lastLeafHash));
  const unknown = records[last + 1];
  if (last === -1 || (unknown !== undefined && unknown.sequence < size))
    return 'does not end with the last record of the job: the next one would not follow on it';
  const known = records.slice(0, last + 1);
  let expected: JobRow | null = null;
  for (const record of known) expected = afterRecord(expected, record);
  if (expected === null) return null;
  const erased = known.some(({ payload }) => payload === null);
  const wrong = fields.find((field) =>
    erased && field === 'submittedAtMs' ? !isASubmission(row, known) : !agrees(field, row, expected, erased),
  );
  return wrong === undefined ? null : `has another ${wrong} than its records tell`;
}

/** Without its payload nobody can tell whether a submission was a valid one; the time is that of one, or there was none. */
function isASubmission({ submittedAtMs }: JobRow, records: readonly AuditRecord[]): boolean {
  if (submittedAtMs === null) return true;
  return records.some(
    ({ kind, recordedAt }) => kind === 'submitted' && Math.floor(recordedAt / 1000) === submittedAtMs,
  );
}

/** What records tell even when their payloads are erased. */
const lasting = ['firstSequence', 'updatedAtMs'] as const;
const told = [
  'submittedAtMs',
  'terminalSequence',
  'state',
  'plugin',
  'runtime',
  'outcome',
  'reason',
  'traceId',
] as const;
/** Empty in rows that were made before there were such columns. */
const later = ['pluginSha256', 'keyIds'] as const;
const fields = [...lasting, ...told, ...later];

function agrees(field: (typeof fields)[number], row: JobRow, expected: JobRow, erased: boolean): boolean {
  if (erased && !lasting.some((one) => one === field)) return true;
  const [found, wanted] = [String(row[field] ?? ''), String(expected[field] ?? '')];
  // Who names the trace of another tenant does not get it.
  const mayBeEmpty = field === 'traceId' || later.some((one) => one === field);
  return found === wanted || (found === '' && mayBeEmpty);
}

async function recordsOf(reader: LedgerReader, job: JobRef): Promise<AuditRecord[]> {
  const records: AuditRecord[] = [];
  for (let after = -1; ; ) {
    const more = await reader.recordsOfJob(job, after, page);
    records.push(...more);
    const last = more.at(-1);
    if (last === undefined) return records;
    after = last.tenantSequence;
  }
}
