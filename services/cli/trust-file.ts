/**
 * The trust store as a file that commands change: each change is a new version, signed by the root, written as a whole,
 * one at a time. Nothing is signed again that the same root had not signed before.
 */
import { mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { UsageError } from '../platform/errors.ts';
import type { PublicKey, SigningKey, StoredKey, TrustStoreContent, TrustStoreFile } from '../trust/index.ts';
import {
  emptyTrustStore,
  encodeTrustStore,
  formatInstant,
  keyIdOf,
  openTrustStore,
  publicKeyFromText,
  publicKeyToPem,
  readTrustStoreContent,
  readTrustStoreFile,
  rotateRoot,
  signTrustStore,
  withKey,
} from '../trust/index.ts';
import { readBytes, readIfThere, withLock, writeAtomically, writeNew } from './files.ts';
import { loadPrivateKey } from './private-keys.ts';
import { expectValue, makeKeyPair } from './signing.ts';

/** Where the root's key pair lies unless somebody says otherwise: beside the store that it signs. */
export const rootKeyPath = (store: string): string => join(dirname(store), 'root.pem');
export const rootPublicPath = (store: string): string => join(dirname(store), 'root.pub');

/** The root key that signs changes of this store. */
export async function loadRootKey(store: string, source: string | null): Promise<SigningKey> {
  const path = source ?? rootKeyPath(store);
  if (source === null && (await readIfThere(path, 'root key')) === null)
    throw new UsageError(
      `there is no root key ${path}: name it with --root-key or SANDBUS_ROOT_KEY, or make one with \`sandbus trust init\``,
    );
  return loadPrivateKey(path);
}

export interface FirstStore {
  readonly expiresMs: number;
  readonly threshold: number;
  /** An existing root key; null takes the one beside the store, or makes one. */
  readonly rootKey: string | null;
}

export interface MadeStore {
  readonly content: TrustStoreContent;
  readonly rootKeyId: string;
  /** Where a new private key was written; null where the root existed. */
  readonly newRootKey: string | null;
  readonly rootPublic: string;
}

/** Makes a store that trusts nobody yet, and what it needs of a root. Overwrites nothing. */
export async function initStore(path: string, first: FirstStore): Promise<MadeStore> {
  if ((await readIfThere(path, 'trust store')) !== null)
    throw new UsageError(`cannot write ${path}: it is there already, and is not overwritten`);
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const { root, newRootKey } = await takeRoot(path, first.rootKey);
  const content = emptyTrustStore(first.expiresMs, first.threshold);
  await writeNew(path, signTrustStore(expectValue(encodeTrustStore(content), path), root), 0o644);
  return { content, rootKeyId: root.keyId, newRootKey, rootPublic: rootPublicPath(path) };
}

/** The root key that is there, or a new one; and beside the store its public key, which the services pin. */
async function takeRoot(store: string, given: string | null) {
  const path = given ?? rootKeyPath(store);
  const publicPath = rootPublicPath(store);
  const isNew = given === null && (await readIfThere(path, 'root key')) === null;
  if (isNew) await makeKeyPair(path, publicPath);
  const root = await loadPrivateKey(path);
  const pinned = await readIfThere(publicPath, 'root key');
  if (pinned === null) await writeNew(publicPath, publicKeyToPem(root.publicKey), 0o644);
  else if (expectValue(publicKeyFromText(Buffer.from(pinned).toString()), publicPath).keyId !== root.keyId)
    throw new UsageError(`${publicPath} is the public key of another root than ${path}`);
  return { root, newRootKey: isNew ? path : null };
}

export interface OpenedStore {
  readonly file: TrustStoreFile;
  readonly content: TrustStoreContent;
  /** Key ids, oldest first. */
  readonly rootLine: readonly string[];
}

/** The store's content, after the root's signature was checked. */
export async function openStore(path: string, root: PublicKey): Promise<OpenedStore> {
  const bytes = await readIfThere(path, 'trust store');
  if (bytes === null)
    throw new UsageError(`there is no trust store ${path}: make one with \`sandbus trust init\``);
  const { rootLine } = expectValue(openTrustStore(bytes, root), path);
  const file = expectValue(readTrustStoreFile(bytes), path);
  return { file, content: expectValue(readTrustStoreContent(file.store.payload), path), rootLine };
}

/** The store as its root left it. A root that was replaced may change nothing any more. */
async function openAsRoot(path: string, root: SigningKey): Promise<OpenedStore> {
  const opened = await openStore(path, root);
  const newest = opened.rootLine.at(-1);
  if (newest !== root.keyId)
    throw new UsageError(
      `${path}: root ${root.keyId} was replaced by root ${newest}: sign with that one's key`,
    );
  return opened;
}

/** Replaces the store by what `change` makes of it. */
export function changeStore(
  path: string,
  root: SigningKey,
  change: (content: TrustStoreContent) => TrustStoreContent,
): Promise<TrustStoreContent> {
  return withLock(path, async () => {
    const { file, content } = await openAsRoot(path, root);
    const next = change(content);
    const bytes = signTrustStore(expectValue(encodeTrustStore(next), path), root, file.rotations);
    await writeAtomically(path, bytes, 0o644);
    return next;
  });
}

/** Hands the store to another root. Both sign: the old one gives, and the new one shows that somebody holds its key. */
export function changeRoot(path: string, root: SigningKey, next: SigningKey): Promise<TrustStoreContent> {
  return withLock(path, async () => {
    const { file, content, rootLine } = await openAsRoot(path, root);
    if (rootLine.includes(next.keyId))
      throw new UsageError(`root ${next.keyId} is, or was, a root of ${path}: rotate to a new key`);
    const bytes = rotateRoot(file, root, next);
    expectValue(openTrustStore(bytes, root), path);
    await writeAtomically(path, bytes, 0o644);
    return content;
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
  root: SigningKey,
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
  return { keyId, content: await changeStore(path, root, (content) => withKey(content, stored)) };
}

/** Id of a stored key; a key that cannot be read has none. */
export function keyIdOfStored(key: StoredKey): string | null {
  const parsed = publicKeyFromText(key.publicKey);
  return parsed.ok ? keyIdOf(parsed.value.publicKey) : null;
}
