/** A job that somebody names at the command line. */
import { setTimeout as delay } from 'node:timers/promises';
import type { JobSummary, SandbusClient } from '../client/index.ts';
import { patiently } from '../client/request.ts';
import { UsageError } from '../platform/errors.ts';
import { exitCode } from './exit-codes.ts';

/**
 * The job as the ledger knows it. One that was submitted a moment ago may not be recorded yet: it has a little time. For
 * `patienceMs` the audit service may be away, as when it is started again. Throws UsageError.
 */
export async function knownJob(
  client: Pick<SandbusClient, 'job' | 'tenant'>,
  jobId: string,
  patienceMs = 0,
): Promise<JobSummary> {
  for (let tries = 0; tries < 5; tries++, await delay(200)) {
    const job = await patiently(() => client.job(jobId), patienceMs);
    if (job !== null) return job;
  }
  throw new UsageError(`there is no job ${jobId} of tenant ${client.tenant}`, exitCode('notFound'));
}
