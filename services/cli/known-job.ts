/** A job that somebody names at the command line. */
import type { JobSummary, SandbusClient } from '../client/index.ts';
import { UsageError } from '../platform/errors.ts';
import { exitCode } from './exit-codes.ts';

/**
 * The job as the ledger knows it. One that was submitted a moment ago may not be recorded yet: it has a little time.
 * Throws UsageError.
 */
export async function knownJob(client: SandbusClient, jobId: string): Promise<JobSummary> {
  for (let tries = 0; tries < 5; tries++) {
    const job = await client.job(jobId);
    if (job !== null) return job;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  throw new UsageError(`there is no job ${jobId} of tenant ${client.tenant}`, exitCode('notFound'));
}
