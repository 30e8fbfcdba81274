/** What `sandbus audit verify` does. */
import { openReader } from '../ledger/open.ts';
import type { JobVerdict, ProvedJob } from '../ledger/tlog/job-proof.ts';
import { checkJobProof, saysWhat } from '../ledger/tlog/job-proof.ts';
import type { VerifyReport } from '../ledger/verify.ts';
import { verifyLedger } from '../ledger/verify.ts';
import { UsageError } from '../platform/errors.ts';
import type { VerifyCliOptions } from './audit-verify.ts';
import { loadCliConfig } from './config.ts';
import { exitCode } from './exit-codes.ts';
import { readBytes } from './files.ts';
import { readCheckpoint, readKeyringFile, readLogKey } from './ledger-files.ts';
import { endProgress, print, printJson, say, showProgress } from './output.ts';
import { printable } from './table.ts';
import { limitYoungGeneration } from './young-generation.ts';

export function verify(options: VerifyCliOptions): Promise<number> {
  const { proof, ledger, checkpoint, since } = options;
  if (proof === undefined) return verifyStore(options);
  const other = Object.entries({ ledger, checkpoint, since }).find(([, value]) => value !== undefined);
  if (other !== undefined) throw new UsageError(`--proof needs no --${other[0]}: it is checked by itself`);
  return verifyProof(proof, options);
}

// --- A ledger

async function verifyStore(options: VerifyCliOptions): Promise<number> {
  const key = await readLogKey(options.logKey);
  const kept = options.checkpoint === undefined ? null : await readCheckpoint(options.checkpoint, key);
  const since = options.since === undefined ? null : await readCheckpoint(options.since, key);
  const keyring = await keyringOf(options);
  const reader = await openReader(options.ledger ?? loadCliConfig().ledger);
  try {
    const onProgress = (done: number, size: number) => {
      limitYoungGeneration();
      showProgress(`${done} of ${size} records`);
    };
    const report = await verifyLedger(reader, {
      key,
      kept,
      since,
      keyring,
      jobs: options.jobs === true,
      onProgress,
    });
    endProgress();
    const { root, ...rest } = report;
    if (options.json) printJson({ log: key.name, ...rest, rootHash: root });
    else tell(report, key.name, kept !== null || since !== null);
    return exitCode(report.ok ? 'ok' : 'failed');
  } finally {
    await reader.close();
  }
}

function tell(report: VerifyReport, log: string, hasKept: boolean): void {
  const { ok, size, root, covered, checkpoints, erased, validSignatures, findings, moreFindings } = report;
  for (const { fault, mend } of findings) print(`${printable(fault)}\n    to do: ${mend}\n`);
  if (moreFindings > 0) print(`and ${moreFindings} more\n`);
  const what = whatOf(report);
  if (!ok) {
    const count = findings.length + moreFindings;
    say(`sandbus: the ledger ${log} is not whole: ${count} ${count === 1 ? 'fault' : 'faults'} in ${what}`);
    return;
  }
  const more = [
    `${checkpoints} checkpoints agree`,
    ...(validSignatures > 0 ? [`${validSignatures} signatures of services are valid`] : []),
    ...(erased > 0 ? [`${erased} payloads are erased`] : []),
    ...(covered < size ? [`the last ${size - covered} are not signed yet`] : []),
  ];
  print(`whole: ${what} of ${log}; ${more.join(', ')}\n`);
  print(`root: ${Buffer.from(root ?? []).toString('base64')}\n`);
  if (!hasKept)
    say(
      'No kept checkpoint was given: a history that was rewritten with the key of the log, or cut at the end, would not show.',
    );
}

function whatOf({ from, size }: VerifyReport): string {
  if (from === 0) return `${size} records`;
  return from < size ? `records ${from} to ${size - 1}` : `nothing is new after ${size} records`;
}

// --- A proof

async function verifyProof(file: string, options: VerifyCliOptions): Promise<number> {
  const key = await readLogKey(options.logKey);
  const bytes = await readBytes(file, 'proof');
  const verdict = checkJobProof(bytes, key, await keyringOf(options));
  if (options.json) printJson(proofJson(verdict));
  else if (verdict.ok) tellProof(verdict.value);
  else say(`sandbus: ${file} proves nothing:\n${verdict.faults.map((fault) => `  ${fault}`).join('\n')}`);
  return exitCode(verdict.ok ? 'ok' : 'failed');
}

function tellProof(job: ProvedJob): void {
  for (const { sequence, recordedAt, kind, signer, payload, signature } of job.events) {
    const at = new Date(recordedAt / 1000).toISOString().slice(0, 23).replace('T', ' ');
    const size = payload === null ? 'not in the proof' : `${payload.length} bytes`;
    const signed = signature === 'valid' ? '  signature valid' : '';
    print(
      `${String(sequence).padStart(9)}  ${at}  ${kind.padEnd(16)}  ${printable(signer.padEnd(9))}  ${size}${signed}\n`,
    );
  }
  print(`${saysWhat(job)}\n`);
}

function proofJson(verdict: JobVerdict): object {
  if (!verdict.ok) return verdict;
  const { checkpoint, ...job } = verdict.value;
  const { origin, size, root } = checkpoint;
  return { ok: true, says: saysWhat(verdict.value), checkpoint: { origin, size, rootHash: root }, ...job };
}

async function keyringOf({ signatures, serviceKeys }: VerifyCliOptions) {
  return signatures === true || serviceKeys !== undefined ? await readKeyringFile(serviceKeys) : null;
}
