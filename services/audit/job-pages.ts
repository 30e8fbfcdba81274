/** Jobs by what is known of them, newest first. */
import { z } from 'zod';
import type { JobFilter, JobPage, JobRow, LedgerReader } from '../ledger/store.ts';
import { fitting } from './pages.ts';

const states = ['submitted', 'verified', 'routed', 'started', 'finished', 'rejected', 'cancelled'] as const;
const digest = z.string().regex(/^[0-9a-f]{64}$/, 'must be 64 hexadecimal digits in lower case');
const name = z.string().min(1).max(512);

/** Everything by which jobs are found, as it comes in a request. All that is given must hold. */
export const jobFilterShape = {
  /** Submitted at or after, and before, milliseconds since 1970. */
  since: z.number().min(0).optional(),
  until: z.number().min(0).optional(),
  state: z.enum(states).optional(),
  outcome: name.optional(),
  runtime: name.optional(),
  keyId: digest.optional(),
  plugin: name.optional(),
  pluginSha256: digest.optional(),
  /** Only jobs that are older: the `position` of the last one of the page before. */
  before: z.int().min(0).optional(),
};
export type JobFilterBody = z.infer<z.ZodObject<typeof jobFilterShape>>;

/** The store's filter and page of a request. Outcomes may be written with hyphens, as the documents do. */
export function jobQueryOf(
  body: JobFilterBody & { readonly limit: number },
  tenant: string | undefined,
): [JobFilter, JobPage] {
  const { before, limit, since, until, state, outcome, runtime, keyId, plugin, pluginSha256 } = body;
  const filter = {
    ...{ tenant, since, until, state, runtime, keyId, plugin, pluginSha256 },
    outcome: outcome?.replaceAll('-', '_'),
  };
  const given = Object.entries(filter).filter(([, value]) => value !== undefined);
  return [Object.fromEntries(given) as JobFilter, { limit, ...(before === undefined ? {} : { before }) }];
}

/** The tenant's jobs as far as they fit into one reply; `more` says that there may be others. */
export async function jobsReply(
  store: LedgerReader,
  tenant: string,
  body: JobFilterBody & { readonly jobId?: string | undefined; readonly limit: number },
) {
  if (body.jobId !== undefined) {
    const job = await store.job({ tenant, jobId: body.jobId });
    return { jobs: job?.state == null ? [] : [jobView(job)], more: false };
  }
  const [filter, page] = jobQueryOf(body, tenant);
  const rows = await store.jobs(filter, { ...page, limit: page.limit + 1 });
  const jobs = fitting(rows, body.limit, jobView);
  return { jobs, more: jobs.length < rows.length };
}

export function jobView(job: JobRow) {
  const { lastLeafHash: _hash, firstSequence: position, terminalSequence: _terminal, ...view } = job;
  return { ...view, position };
}
