/** The trust store as a file that commands change: each change is a new version, written as a whole, one at a time. */
import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { UsageError } from '../platform/errors.ts';
import type { StoredKey, TrustStoreContent } from '../trust/index.ts';
import {
  emptyTrustStore,
  encodeTrustStore,
  formatInstant,
  keyIdOf,
  publicKeyFromText,
  readTrustStoreContent,
  withKey,
} from '../trust/index.ts';
import { readBytes, readIfThere, withLock, writeAtomically, writeNew } from './files.ts';
import { expectValue } from './signing.ts';

export async function readStoreContent(path: string): Promise<TrustStoreContent> {
  const bytes = await readIfThere(path, 'trust store');
  if (bytes === null)
    throw new UsageError(`there is no trust store ${path}: make one with \`sandbus trust init\``);
  return expectValue(readTrustStoreContent(bytes), path);
}

export async function initStore(
  path: string,
  expiresMs: number,
  threshold: number,
): Promise<TrustStoreContent> {
  const content = emptyTrustStore(expiresMs, threshold);
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  await writeNew(path, expectValue(encodeTrustStore(content), path), 0o644);
  return content;
}

/** Replaces the store by what `change` makes of it. */
export function changeStore(
  path: string,
  change: (content: TrustStoreContent) => TrustStoreContent,
): Promise<TrustStoreContent> {
  return withLock(path, async () => {
    const next = change(await readStoreContent(path));
    await writeAtomically(path, expectValue(encodeTrustStore(next), path), 0o644);
    return next;
  });
}

export interface NewKey {
  readonly publicKeyFile: string;
  readonly owner: string;
  readonly plugins: readonly string[];
  readonly tenants: readonly string[];
  readonly gpu: boolean;
  readonly network: boolean;
  readonly notBeforeMs: number;
  readonly expiresMs: number;
}

/** Trusts one key more. Returns its id with the new store. */
export async function addKey(
  path: string,
  key: NewKey,
): Promise<{ keyId: string; content: TrustStoreContent }> {
  const text = Buffer.from(await readBytes(key.publicKeyFile, 'public key')).toString('utf8');
  const { keyId } = expectValue(publicKeyFromText(text), key.publicKeyFile);
  const stored: StoredKey = {
    publicKey: text.trim(),
    owner: key.owner,
    scope: { plugins: [...key.plugins], tenants: [...key.tenants], gpu: key.gpu, network: key.network },
    notBefore: formatInstant(key.notBeforeMs),
    expires: formatInstant(key.expiresMs),
  };
  return { keyId, content: await changeStore(path, (content) => withKey(content, stored)) };
}

/** Id of a stored key; a key that cannot be read has none. */
export function keyIdOfStored(key: StoredKey): string | null {
  const parsed = publicKeyFromText(key.publicKey);
  return parsed.ok ? keyIdOf(parsed.value.publicKey) : null;
}
