/** A proof of all that happened to a job, made of what the audit service answers. */
import { setTimeout as delay } from 'node:timers/promises';
import type { SandbusClient } from '../client/index.ts';
import type { JobProof } from '../ledger/tlog/job-proof.ts';
import { isTerminal, jobProofFormat, proofLeaf, upToTerminal } from '../ledger/tlog/job-proof.ts';
import type { AuditRecord } from '../platform/codec.ts';
import { OperationalError, UsageError } from '../platform/errors.ts';
import { exitCode } from './exit-codes.ts';

/** A checkpoint comes within a second, while the service is well. */
const patienceMs = 10_000;
const pauseMs = 300;

/** Waits until a checkpoint covers the job. It is as good as the service's word until it is checked (checkJobProof). */
export async function makeJobProof(
  client: SandbusClient,
  jobId: string,
  { payloads }: { readonly payloads: boolean },
): Promise<JobProof> {
  const all: AuditRecord[] = [];
  for await (const { record } of client.records({ jobId, follow: false })) all.push(record);
  if (all.length === 0)
    throw new UsageError(`there is no job ${jobId} of tenant ${client.tenant}`, exitCode('notFound'));
  const records = upToTerminal(all);
  const { checkpoint, paths } = await coveringPaths(client, jobId, records);
  const leaves = records.flatMap((record) => {
    const path = paths.get(record.sequence);
    return path === undefined ? [] : [proofLeaf(record, path.map(bytesOf), payloads)];
  });
  return { format: jobProofFormat, tenant: client.tenant, jobId, checkpoint, leaves };
}

interface Paths {
  readonly checkpoint: string;
  /** Ledger sequence → hashes from the leaf to the root. */
  readonly paths: ReadonlyMap<number, readonly string[]>;
}

/** Waits until a checkpoint covers the end of the job; of a job that goes on, until one covers its first event. */
async function coveringPaths(
  client: SandbusClient,
  jobId: string,
  records: readonly AuditRecord[],
): Promise<Paths> {
  const last = records.at(-1);
  const needed = last !== undefined && isTerminal(last.kind) ? last : records[0];
  const giveUpAt = performance.now() + patienceMs;
  for (;;) {
    const found = await allPaths(client, jobId).catch(orNull);
    if (found?.paths.has(needed?.sequence ?? -1)) return found;
    if (performance.now() > giveUpAt)
      throw new OperationalError(
        'NOT_SIGNED_YET',
        `no checkpoint covers ledger sequence ${needed?.sequence} after ${patienceMs / 1000} s: is the audit service well? (its log says)`,
      );
    await delay(pauseMs);
  }
}

/** Nothing is signed yet, or the service begins just now. */
function orNull(error: unknown): null {
  if (error instanceof OperationalError && error.code === 'UNAVAILABLE') return null;
  throw error;
}

async function allPaths(client: SandbusClient, jobId: string): Promise<Paths> {
  const paths = new Map<number, readonly string[]>();
  let page = await client.paths({ jobId });
  for (;;) {
    for (const { sequence, inclusion } of page.leaves) paths.set(sequence, inclusion);
    if (!page.more) return { checkpoint: page.checkpoint, paths };
    page = await client.paths({ jobId, after: page.next, treeSize: page.treeSize });
  }
}

const bytesOf = (text: string): Uint8Array => Buffer.from(text, 'base64');
