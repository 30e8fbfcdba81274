/** The answers of the query API, from the ledger's reader alone: nothing here can write. */
import { proveJob } from '../../ledger/prove.ts';
import type { JobRow, LedgerReader } from '../../ledger/store.ts';
import type { AuditRecord } from '../../platform/codec.ts';
import { decode } from '../../platform/codec.ts';
import { plainJson } from '../../platform/plain-json.ts';
import type { JobRef } from '../../platform/topology.ts';
import type { JobFilterBody } from '../job-pages.ts';
import { jobQueryOf, jobView } from '../job-pages.ts';
import { checkpointView, standingReply } from '../standing.ts';
import { spanView } from '../trace-pages.ts';
import { Problem } from './problems.ts';

/** Payloads of one page, together. */
const pageBytes = 4 * 1024 * 1024;
/** Far more than a job has, unless somebody goes on asking for its end. */
const mostRecordsOfJob = 200;
const longestTrace = 2000;

export async function headAnswer(store: LedgerReader) {
  return plainJson(await store.head());
}

export async function jobsAnswer(
  store: LedgerReader,
  query: JobFilterBody & { readonly tenant?: string | undefined; readonly limit: number },
) {
  const [filter, page] = jobQueryOf(query, query.tenant);
  const rows = await store.jobs(filter, { ...page, limit: page.limit + 1 });
  const jobs = rows.slice(0, query.limit).map(jobView);
  return { jobs, next: rows.length > jobs.length ? (jobs.at(-1)?.position ?? null) : null };
}

export async function jobAnswer(store: LedgerReader, ref: JobRef) {
  const job = jobView(await existing(store, ref));
  const records = await store.recordsOfJob(ref, -1, { records: mostRecordsOfJob, bytes: pageBytes });
  const standing = await standingReply(store, records.at(-1)?.sequence ?? 0);
  const bytes = records.reduce((sum, { payload }) => sum + (payload?.length ?? 0), 0);
  const more = records.length >= mostRecordsOfJob || bytes >= pageBytes;
  return { job, records: records.map(recordView), more, standing };
}

export async function recordsAnswer(
  store: LedgerReader,
  { tenant, jobId }: { readonly tenant: string; readonly jobId?: string },
  { after, limit }: { readonly after: number; readonly limit: number },
) {
  const page = { records: limit, bytes: pageBytes };
  const records =
    jobId === undefined
      ? await store.recordsOfTenant(tenant, after, page)
      : await store.recordsOfJob({ tenant, jobId }, after, page);
  if (jobId !== undefined && records.length === 0) await existing(store, { tenant, jobId });
  // A page that is full, by number or by bytes, may have more behind it; the last one is empty.
  return { records: records.map(recordView), next: records.at(-1)?.tenantSequence ?? null };
}

export async function spansAnswer(store: LedgerReader, ref: JobRef) {
  const { traceId } = await existing(store, ref);
  const spans = traceId === null ? [] : await store.spansOfTrace(traceId, longestTrace);
  return { spans: spans.map(spanView) };
}

export async function proofAnswer(store: LedgerReader, ref: JobRef, payloads: boolean) {
  return proveJob(store, ref, { payloads });
}

export async function checkpointsAnswer(store: LedgerReader, covering: number, limit: number) {
  return { checkpoints: (await store.checkpoints(covering, limit)).map(checkpointView) };
}

export async function newestCheckpointAnswer(store: LedgerReader) {
  const newest = await store.newestCheckpoint();
  if (newest === null) throw new Problem(404, 'NOT_FOUND', 'no checkpoint is signed yet');
  return checkpointView(newest);
}

async function existing(store: LedgerReader, ref: JobRef): Promise<JobRow> {
  const job = await store.job(ref);
  if (job === null)
    throw new Problem(404, 'NOT_FOUND', `there is no job ${ref.jobId} of tenant ${ref.tenant}`);
  return job;
}

function recordView(record: AuditRecord) {
  const { stream: _stream, streamSequence: _place, ...rest } = record;
  return { ...(plainJson(rest) as object), event: plainJson(eventIn(record)) };
}

/** The ledger also keeps what nobody can decode. */
function eventIn({ payload }: AuditRecord) {
  try {
    return payload === null ? null : decode(payload);
  } catch {
    return null;
  }
}
