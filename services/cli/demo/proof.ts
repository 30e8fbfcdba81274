/** What the demo shows of the ledger: one job proved with the key of the log alone, and the whole of it verified. */
import type { SandbusClient } from '../../client/index.ts';
import { logKeyFiles } from '../../ledger/log-key.ts';
import { ledgerFileIn, openReader } from '../../ledger/open.ts';
import { checkJobProof, saysWhat } from '../../ledger/tlog/job-proof.ts';
import { verifyLedger } from '../../ledger/verify.ts';
import { OperationalError } from '../../platform/errors.ts';
import { makeJobProof } from '../job-proof.ts';
import { readLogKey } from '../ledger-files.ts';

/** Throws OperationalError NOT_PROVED where the ledger or the proof is not what it should be. */
export async function provenRecord(client: SandbusClient, jobId: string, stateDir: string): Promise<string> {
  const key = await readLogKey(logKeyFiles(stateDir).verifierKey);
  const proof = await makeJobProof(client, jobId, { payloads: true });
  const verdict = checkJobProof(Buffer.from(JSON.stringify(proof)), key);
  if (!verdict.ok) throw notProved(verdict.faults);
  const reader = await openReader(ledgerFileIn(stateDir));
  try {
    const { ok, size, findings } = await verifyLedger(reader, { key, jobs: true });
    if (!ok) throw notProved(findings.map(({ fault }) => fault));
    return `${saysWhat(verdict.value)}\nVerified: all ${size} records of the ledger, from the first on.`;
  } finally {
    await reader.close();
  }
}

const notProved = (faults: readonly string[]) =>
  new OperationalError('NOT_PROVED', `the record of the demo cannot be proved: ${faults.join('; ')}`);
