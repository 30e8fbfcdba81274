/** What `sandbus audit prove` and `sandbus audit checkpoint` do. */
import { setTimeout as delay } from 'node:timers/promises';
import type { SandbusClient } from '../client/index.ts';
import type { SignedCheckpoint } from '../ledger/tlog/checkpoint.ts';
import { openCheckpoint } from '../ledger/tlog/checkpoint.ts';
import type { JobProof } from '../ledger/tlog/job-proof.ts';
import {
  checkJobProof,
  isTerminal,
  jobProofFormat,
  proofLeaf,
  saysWhat,
  upToTerminal,
} from '../ledger/tlog/job-proof.ts';
import { checkConsistency } from '../ledger/tlog/merkle.ts';
import type { VerifierKey } from '../ledger/tlog/note.ts';
import type { AuditRecord } from '../platform/codec.ts';
import { OperationalError, UsageError } from '../platform/errors.ts';
import type { CheckpointCliOptions, ProveCliOptions } from './audit-prove.ts';
import { exitCode } from './exit-codes.ts';
import { readIfThere, writeAtomically } from './files.ts';
import { readLogKey } from './ledger-files.ts';
import { print, printJson, say } from './output.ts';
import { withClient } from './session.ts';

/** A checkpoint comes within a second, while the service is well. */
const patienceMs = 10_000;
const pauseMs = 300;

// --- A proof

export async function prove(jobId: string, options: ProveCliOptions): Promise<number> {
  const key = await readLogKey(options.logKey);
  return withClient(async (client) => {
    const proof = await proofOf(client, jobId, options.payloads);
    const text = `${JSON.stringify(proof, null, 1)}\n`;
    const verdict = checkJobProof(Buffer.from(text), key);
    if (!verdict.ok) {
      say(
        `sandbus: the audit service gave what proves nothing:\n${verdict.faults.map((fault) => `  ${fault}`).join('\n')}`,
      );
      return exitCode('failed');
    }
    if (options.out === undefined) print(text);
    else await writeAtomically(options.out, text, 0o600);
    if (options.out !== undefined && options.json)
      printJson({ out: options.out, says: saysWhat(verdict.value) });
    else say(saysWhat(verdict.value));
    return exitCode('ok');
  });
}

async function proofOf(client: SandbusClient, jobId: string, payloads: boolean): Promise<JobProof> {
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
        `no checkpoint covers event ${needed?.sequence} after ${patienceMs / 1000} s: is the audit service well? (its log says)`,
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

// --- A checkpoint

export async function checkpoint(options: CheckpointCliOptions): Promise<number> {
  const key = await readLogKey(options.logKey);
  const kept = options.out === undefined ? null : await keptIn(options.out, key);
  return withClient(async (client) => {
    const answer = await client.checkpoint(kept?.size);
    const newest = openCheckpoint(Buffer.from(answer.checkpoint), key);
    const fault = newest.ok ? growthFault(kept, newest.value, answer.consistency) : newest.reason;
    if (fault !== null || !newest.ok) {
      say(
        `sandbus: ${fault}. ${kept === null ? 'Nothing' : `${options.out} stays as it is: keep it. Nothing`} was written.`,
      );
      return exitCode('failed');
    }
    if (options.out !== undefined) await writeAtomically(options.out, answer.checkpoint, 0o644);
    tellCheckpoint(newest.value, kept, answer.checkpoint, options);
    return exitCode('ok');
  }).catch(asAnswer);
}

/** That the log was set back is an answer, and a bad one. */
function asAnswer(error: unknown): number {
  if (!(error instanceof OperationalError && error.code === 'TRUNCATED')) throw error;
  say(`sandbus: ${error.message}`);
  return exitCode('failed');
}

async function keptIn(file: string, key: VerifierKey): Promise<SignedCheckpoint | null> {
  const bytes = await readIfThere(file, 'checkpoint');
  if (bytes === null) return null;
  const opened = openCheckpoint(bytes, key);
  if (opened.ok) return opened.value;
  throw new UsageError(`${file} is no checkpoint of this log: ${opened.reason}`);
}

/** Null when the log has only grown; else what speaks against it. */
function growthFault(
  kept: SignedCheckpoint | null,
  newest: SignedCheckpoint,
  consistency: readonly string[] | null,
): string | null {
  if (kept === null || kept.size === 0) return null;
  const checked = checkConsistency(kept, newest, (consistency ?? []).map(bytesOf));
  return checked.ok ? null : `the log is not the one that you keep a checkpoint of: ${checked.reason}`;
}

function tellCheckpoint(
  { origin, size, root }: SignedCheckpoint,
  kept: SignedCheckpoint | null,
  note: string,
  { json, out }: CheckpointCliOptions,
): void {
  const grown = kept === null ? 'kept for the first time' : `goes on from the ${kept.size} of before`;
  if (json) printJson({ origin, size, rootHash: root, since: kept?.size ?? null, checkpoint: note });
  else if (out === undefined) print(note);
  else print(`${origin}: ${size} records, ${grown}\n`);
}

const bytesOf = (text: string): Uint8Array => Buffer.from(text, 'base64');
