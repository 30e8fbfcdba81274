/** Proofs made from a store: of a job, and that a log has only grown since a checkpoint that somebody kept. */
import type { AuditRecord } from '../platform/codec.ts';
import { OperationalError } from '../platform/errors.ts';
import type { JobRef } from '../platform/topology.ts';
import type { LedgerReader, StoredCheckpoint } from './store.ts';
import type { JobProof } from './tlog/job-proof.ts';
import { isTerminal, jobProofFormat, mostLeaves, proofLeaf } from './tlog/job-proof.ts';
import { consistencyProof, inclusionProofs } from './tlog/proofs.ts';

export interface ProveOptions {
  /** With the events themselves; true unless set. */
  readonly payloads?: boolean;
}

/**
 * The proof of a job's events up to its terminal event, by the newest checkpoint. Of a job that has not ended: of those
 * that are signed so far. Throws OperationalError NOT_FOUND for a job of which there is nothing, NOT_SIGNED_YET when its
 * last event waits for a checkpoint (which takes a second), TOO_LARGE, and MissingHashes for a damaged ledger.
 */
export async function proveJob(
  reader: LedgerReader,
  job: JobRef,
  { payloads = true }: ProveOptions = {},
): Promise<JobProof> {
  const all = await recordsOf(reader, job);
  if (all.length === 0)
    throw new OperationalError('NOT_FOUND', `there is no job ${job.jobId} of tenant ${job.tenant}`);
  const checkpoint = await newestCheckpoint(reader);
  const records = all.filter(({ sequence }) => sequence < checkpoint.treeSize);
  if (records.length === 0 || (records.length < all.length && isTerminal(all.at(-1)?.kind ?? '')))
    throw notSignedYet(`event ${all.at(-1)?.sequence} of job ${job.jobId}`);
  const pathOf = inclusionProofs(reader, checkpoint.treeSize);
  const leaves: JobProof['leaves'] = [];
  for (const record of records) leaves.push(proofLeaf(record, await pathOf(record.sequence), payloads));
  const { tenant, jobId } = job;
  return { format: jobProofFormat, tenant, jobId, checkpoint: textOf(checkpoint), leaves };
}

const page = { records: 256, bytes: 16 * 1024 * 1024 };

/** Up to the terminal event. */
async function recordsOf(reader: LedgerReader, job: JobRef): Promise<AuditRecord[]> {
  const records: AuditRecord[] = [];
  for (let after = -1; ; ) {
    const more = await reader.recordsOfJob(job, after, page);
    const end = more.findIndex(({ kind }) => isTerminal(kind));
    records.push(...(end === -1 ? more : more.slice(0, end + 1)));
    if (records.length > mostLeaves)
      throw new OperationalError('TOO_LARGE', `job ${job.jobId} has more than ${mostLeaves} events`);
    if (end !== -1 || more.length === 0) return records;
    after = more.at(-1)?.tenantSequence ?? after;
  }
}

/** A part of what a proof is made of, for one that does not read the store itself. */
export interface PathPage {
  /** The signed note. */
  readonly checkpoint: string;
  readonly treeSize: number;
  readonly leaves: readonly { readonly sequence: number; readonly inclusion: readonly string[] }[];
  /** Tenant sequence after which the next page begins. */
  readonly next: number;
  readonly more: boolean;
}

export interface PathQuery {
  /** Tenant sequence; -1 from the first event. */
  readonly after: number;
  /** At most 256. */
  readonly limit: number;
  /** The checkpoint of an earlier page; the newest unless set. */
  readonly treeSize?: number | undefined;
}

/** Paths of a job's leaves to a checkpoint. Throws as proveJob does. */
export async function pathsOfJob(reader: LedgerReader, job: JobRef, query: PathQuery): Promise<PathPage> {
  const checkpoint = await checkpointOf(reader, query.treeSize);
  const { treeSize } = checkpoint;
  const limit = { records: query.limit, bytes: page.bytes };
  const records = await reader.recordsOfJob(job, query.after, limit);
  const covered = records.filter(({ sequence }) => sequence < treeSize);
  const pathOf = inclusionProofs(reader, treeSize);
  const leaves: { sequence: number; inclusion: string[] }[] = [];
  for (const { sequence } of covered)
    leaves.push({ sequence, inclusion: (await pathOf(sequence)).map(base64) });
  const next = covered.at(-1)?.tenantSequence ?? query.after;
  const more = records.length > 0 && covered.length === records.length;
  return { checkpoint: textOf(checkpoint), treeSize, leaves, next, more };
}

export interface CheckpointAnswer {
  /** The signed note of the newest checkpoint. */
  readonly checkpoint: string;
  /** Hashes that show that it goes on from the tree of `since`; null where none was named, or it was empty. */
  readonly consistency: readonly string[] | null;
}

/** The newest checkpoint, and the proof that the tree of `since` leaves is how it began. */
export async function checkpointSince(reader: LedgerReader, since: number | null): Promise<CheckpointAnswer> {
  const checkpoint = await newestCheckpoint(reader);
  if (since !== null && since > checkpoint.treeSize)
    throw new OperationalError(
      'TRUNCATED',
      `the newest checkpoint is of ${checkpoint.treeSize} records, the one that you keep of ${since}: the log was set back`,
    );
  const path =
    since === null || since === 0 ? null : await consistencyProof(reader, since, checkpoint.treeSize);
  return { checkpoint: textOf(checkpoint), consistency: path?.map(base64) ?? null };
}

/**
 * Hashes that show that the tree of `older` leaves is how the tree of `newer` began (RFC 9162, 2.1.4.1), for any two sizes
 * of this log. Throws OperationalError NOT_FOUND for sizes that it never had.
 */
export async function consistencyBetween(
  reader: LedgerReader,
  { older, newer }: { readonly older: number; readonly newer: number },
): Promise<{ readonly consistency: readonly string[] }> {
  const { size } = await reader.head();
  if (older < 1 || older > newer || newer > size)
    throw new OperationalError(
      'NOT_FOUND',
      `there is no proof from ${older} to ${newer} records: sizes go from 1 to ${size}, the smaller one first`,
    );
  return { consistency: (await consistencyProof(reader, older, newer)).map(base64) };
}

async function newestCheckpoint(reader: LedgerReader): Promise<StoredCheckpoint> {
  const checkpoint = await reader.newestCheckpoint();
  if (checkpoint === null) throw notSignedYet('the ledger');
  return checkpoint;
}

async function checkpointOf(reader: LedgerReader, treeSize: number | undefined): Promise<StoredCheckpoint> {
  if (treeSize === undefined) return newestCheckpoint(reader);
  const [found] = await reader.checkpoints(treeSize, 1);
  if (found?.treeSize === treeSize) return found;
  throw new OperationalError('NOT_FOUND', `there is no checkpoint of ${treeSize} records`);
}

const notSignedYet = (what: string): OperationalError =>
  new OperationalError('NOT_SIGNED_YET', `no checkpoint covers ${what} yet: ask again in a second`);

const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64');
const textOf = ({ note }: StoredCheckpoint): string => Buffer.from(note).toString('utf8');
