/** audit-operate: what only an operator may ask of the ledger. The server lets nobody but deployment ask. */
import { z } from 'zod';
import type { LedgerWriter } from '../ledger/store.ts';
import type { Logger } from '../platform/log.ts';
import type { Reply, Request } from '../platform/nats/bus.ts';
import { isJobId, isTenant } from '../platform/topology.ts';
import { RequestFault } from './request-fault.ts';

const bodyShape = z.strictObject({
  what: z.literal('erase'),
  tenant: z.string().refine(isTenant, 'must be a tenant'),
  jobId: z.string().refine(isJobId, 'must be a UUIDv7 in lower case'),
});
const longestBody = 4096;

export interface OperateParts {
  readonly store: Pick<LedgerWriter, 'job' | 'eraseJob'>;
  readonly log: Logger;
}

/** Answers one request. Throws RequestFault. */
export async function operate({ store, log }: OperateParts, request: Request): Promise<Reply> {
  const job = parseBody(request.data);
  const row = await store.job(job);
  if (row === null)
    throw new RequestFault('NOT_FOUND', `there is no job ${job.jobId} of tenant ${job.tenant}`);
  // What still goes on is read again by services, and by the ledger itself.
  if (row.state !== null && row.terminalSequence === null)
    throw new RequestFault('JOB_OPEN', `job ${job.jobId} has not ended: cancel it, or wait for its end`);
  const records = await store.eraseJob(job);
  log.info({ job: `${job.tenant}.${job.jobId}`, records }, 'payloads erased');
  return { data: Buffer.from(JSON.stringify({ records })), headers: {} };
}

function parseBody(data: Uint8Array) {
  const text = data.length > longestBody ? '' : Buffer.from(data).toString('utf8');
  const parsed = bodyShape.safeParse(parseJson(text));
  if (parsed.success) return parsed.data;
  throw new RequestFault('BAD_REQUEST', `audit-operate: ${z.prettifyError(parsed.error)}`);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
