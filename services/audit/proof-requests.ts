/** audit-read.<tenant>: what proofs are made of. Hashes alone, so they say nothing about other tenants. */
import { z } from 'zod';
import type { CheckpointAnswer, PathPage } from '../ledger/prove.ts';
import { checkpointSince, consistencyBetween, pathsOfJob } from '../ledger/prove.ts';
import type { LedgerReader } from '../ledger/store.ts';
import { OperationalError } from '../platform/errors.ts';
import type { JobRef } from '../platform/topology.ts';
import { isJobId } from '../platform/topology.ts';
import { RequestFault } from './request-fault.ts';

const treeSize = z.int().min(0);

export const proofShapes = [
  /** Paths of a job's leaves to a checkpoint, from a tenant sequence on; the newest unless an earlier page named one. */
  z.strictObject({
    what: z.literal('proof'),
    jobId: z.string().refine(isJobId, 'must be a UUIDv7 in lower case'),
    after: z.int().min(-1).default(-1),
    treeSize: treeSize.optional(),
    // A path has at most 53 hashes: so many stay under what a reply can hold.
    limit: z.int().min(1).max(128).default(64),
  }),
  /** The newest checkpoint; with the proof that it goes on from a tree of `since` leaves. */
  z.strictObject({ what: z.literal('checkpoint'), since: treeSize.optional() }),
  /** The proof that one tree goes on from another, for any two sizes. */
  z.strictObject({ what: z.literal('consistency'), older: treeSize, newer: treeSize }),
] as const;

export function proofReply(
  store: LedgerReader,
  job: JobRef,
  body: z.infer<(typeof proofShapes)[0]>,
): Promise<PathPage> {
  return answered(pathsOfJob(store, job, body));
}

export function checkpointReply(
  store: LedgerReader,
  { since }: z.infer<(typeof proofShapes)[1]>,
): Promise<CheckpointAnswer> {
  return answered(checkpointSince(store, since ?? null));
}

export function consistencyReply(
  store: LedgerReader,
  { older, newer }: z.infer<(typeof proofShapes)[2]>,
): Promise<{ readonly consistency: readonly string[] }> {
  return answered(consistencyBetween(store, { older, newer }));
}

/** What the ledger does not have is an answer; only what may pass is a failure. */
async function answered<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof OperationalError && error.code === 'NOT_FOUND')
      throw new RequestFault('NOT_FOUND', error.message);
    if (error instanceof OperationalError && error.code === 'TRUNCATED')
      throw new RequestFault('TRUNCATED', error.message);
    throw error;
  }
}
