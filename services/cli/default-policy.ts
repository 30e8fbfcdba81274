/** The policy file that a first `sandbus up`, and `sandbus access init`, write. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { PolicyContent } from '../trust/index.ts';
import { encodePolicy } from '../trust/index.ts';
import { makeFolder, writeNew } from './files.ts';

const gibibyte = 1024 ** 3;

/** What a deployment gives to anybody whose plugins are trusted. */
export const defaultPolicy: PolicyContent = {
  default: {
    memoryBytes: 2 * gibibyte,
    cpuMillis: 2000,
    wallMs: 3_600_000,
    cpuTimeMs: null,
    processes: 512,
    outputBytes: 64 * 1024 * 1024,
    tmpBytes: gibibyte,
    network: false,
    gpu: true,
    concurrency: 64,
    maxAttempts: 5,
  },
  tenants: {},
};

/** Without a policy file everything is refused: one to edit, where there is none. Returns its path when it was written. */
export async function ensurePolicy(stateDir: string): Promise<string | null> {
  const file = join(stateDir, 'policy.json');
  if (existsSync(file)) return null;
  const encoded = encodePolicy(defaultPolicy);
  if (!encoded.ok) throw new Error(encoded.detail);
  await makeFolder(stateDir);
  // It is no secret, and services of other users read it.
  await writeNew(file, encoded.value, 0o644);
  return file;
}
