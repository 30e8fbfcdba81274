/** A job that somebody names at the command line. */
import { setTimeout as delay } from 'node:timers/promises';
import type { JobSummary, SandbusClient } from '../client/index.ts';
import { isAway } from '../client/request.ts';
import { UsageError } from '../platform/errors.ts';
import { exitCode } from './exit-codes.ts';

/**
 * The job as the ledger knows it. One that was submitted a moment ago may not be recorded yet: it has a little time. So long
 * the audit service may be away, as when it is started again; at once is an error unless set.
 * Throws UsageError.
 */
export async function knownJob(
  client: Pick<SandbusClient, 'job' | 'tenant'>,
  jobId: string,
  patienceMs = 0,
): Promise<JobSummary> {
  const giveUpAt = performance.now() + patienceMs;
  for (let misses = 0; misses < 5; await delay(200)) {
    try {
      const job = await client.job(jobId);
      if (job !== null) return job;
      misses++;
    } catch (error) {
      if (!isAway(error) || performance.now() >= giveUpAt) throw error;
    }
  }
  throw new UsageError(`there is no job ${jobId} of tenant ${client.tenant}`, exitCode('notFound'));
}
