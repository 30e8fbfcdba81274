/**
 * The key with which a log signs its checkpoints, and the name of the log. Two files, made by deployment: the private
 * key, and beside it one line for those who verify (a verifier key, c2sp.org/signed-note), which also has the name.
 */
import { createPrivateKey, randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf, UsageError } from '../platform/errors.ts';
import { writeFileSafely } from '../platform/files.ts';
import { newKeyPair } from '../platform/service-keys.ts';
import type { Signer, VerifierKey } from './tlog/note.ts';
import { formatVerifierKey, parseVerifierKey, verifierKeyOf } from './tlog/note.ts';

export interface LogKeyFiles {
  /** PKCS#8, PEM. */
  readonly privateKey: string;
  readonly verifierKey: string;
}

export const logKeyFiles = (stateDir: string): LogKeyFiles => ({
  privateKey: join(stateDir, 'keys', 'ledger.pem'),
  verifierKey: join(stateDir, 'ledger.pub'),
});

const mend = '`sandbus access init` makes one (`sandbus up` does so at its first start)';

/** Makes both files unless the verifier key is there. The name is new for each log: two logs never have the same. */
export async function ensureLogKey(
  files: LogKeyFiles,
  name = `sandbus-ledger/${randomBytes(8).toString('hex')}`,
): Promise<void> {
  if (existsSync(files.verifierKey)) return;
  const { privatePem } = newKeyPair();
  // The private key first: the public one says that both are there.
  await writeFileSafely(files.privateKey, privatePem, 0o600);
  const line = formatVerifierKey(verifierKeyOf(name, createPrivateKey(privatePem)));
  await writeFileSafely(files.verifierKey, `${line}\n`, 0o644);
}

/** Throws UsageError when there is none, or the two files do not belong together. */
export function loadLogKey(files: LogKeyFiles): Signer {
  const { name, keyId } = readVerifierKey(files.verifierKey);
  try {
    const key = createPrivateKey(readFileSync(files.privateKey));
    if (verifierKeyOf(name, key).keyId === keyId) return { name, key };
  } catch (error) {
    throw new UsageError(`no usable ledger key in ${files.privateKey}: ${messageOf(error)}; ${mend}`);
  }
  throw new UsageError(
    `${files.privateKey} is not the private key of ${files.verifierKey}: nobody would believe its checkpoints`,
  );
}

/** Throws UsageError. */
export function readVerifierKey(file: string): VerifierKey {
  try {
    const parsed = parseVerifierKey(readFileSync(file, 'utf8'));
    if (parsed.ok) return parsed.value;
    throw new Error(parsed.reason);
  } catch (error) {
    throw new UsageError(`no usable verifier key of the ledger in ${file}: ${messageOf(error)}; ${mend}`);
  }
}
