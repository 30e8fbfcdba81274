/** What `sandbus audit prove`, `checkpoint` and `consistency` do. */
import type { SandbusClient } from '../client/index.ts';
import type { SignedCheckpoint } from '../ledger/tlog/checkpoint.ts';
import { openCheckpoint } from '../ledger/tlog/checkpoint.ts';
import { checkJobProof, saysWhat } from '../ledger/tlog/job-proof.ts';
import { checkConsistency } from '../ledger/tlog/merkle.ts';
import type { VerifierKey } from '../ledger/tlog/note.ts';
import { OperationalError, UsageError } from '../platform/errors.ts';
import type { CheckpointCliOptions, ProveCliOptions } from './audit-prove.ts';
import { exitCode } from './exit-codes.ts';
import { mustBeNew, readIfThere, writeAtomically, writeNew } from './files.ts';
import { makeJobProof } from './job-proof.ts';
import { readCheckpoint, readLogKey } from './ledger-files.ts';
import { print, printed, printJson, say } from './output.ts';
import { withClient } from './session.ts';

// --- A proof

export async function prove(jobId: string, options: ProveCliOptions): Promise<number> {
  const key = await readLogKey(options.logKey);
  if (options.out !== undefined) await mustBeNew(options.out);
  return withClient(async (client) => {
    const proof = await makeJobProof(client, jobId, options);
    const text = `${JSON.stringify(proof, null, 1)}\n`;
    const verdict = checkJobProof(Buffer.from(text), key);
    if (!verdict.ok) {
      say(
        `sandbus: the audit service gave what proves nothing:\n${verdict.faults.map((fault) => `  ${fault}`).join('\n')}`,
      );
      return exitCode('failed');
    }
    if (options.out === undefined) await printed(text);
    else await writeNew(options.out, text, 0o600);
    if (options.out !== undefined && options.json)
      printJson({ out: options.out, says: saysWhat(verdict.value) });
    else say(saysWhat(verdict.value));
    return exitCode('ok');
  });
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

// --- Two checkpoints

export async function consistency(
  olderFile: string,
  newerFile: string,
  options: CheckpointCliOptions,
): Promise<number> {
  const key = await readLogKey(options.logKey);
  const [older, newer] = [await readCheckpoint(olderFile, key), await readCheckpoint(newerFile, key)];
  return withClient(async (client) => {
    const path = older.size < newer.size ? await provenPath(client, older.size, newer.size) : [];
    const fault = path === null ? 'the log cannot prove it' : growthFault(older, newer, path);
    if (options.json) printJson({ older: older.size, newer: newer.size, ok: fault === null, fault });
    else if (fault === null)
      print(`${newer.origin}: the ${newer.size} records go on from the ${older.size} of before\n`);
    else say(`sandbus: ${newerFile} does not go on from ${olderFile}: ${fault}`);
    return exitCode(fault === null ? 'ok' : 'failed');
  });
}

/** Null where the log never had these sizes: then it was set back, or one of them is of another log by the same key. */
function provenPath(client: SandbusClient, older: number, newer: number): Promise<readonly string[] | null> {
  return client.consistency(older, newer).catch((error: unknown) => {
    if (error instanceof OperationalError && error.code === 'NOT_FOUND') return null;
    throw error;
  });
}

const bytesOf = (text: string): Uint8Array => Buffer.from(text, 'base64');
