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
  withoutKey,
  withReplacedKey,
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

/** One command after the other. What is no store that this root may change gets no lock file. */
async function whileLocked<T>(
  path: string,
  root: SigningKey,
  work: (opened: OpenedStore) => Promise<T>,
): Promise<T> {
  await openAsRoot(path, root);
  return withLock(path, async () => work(await openAsRoot(path, root)));
}

/** Replaces the store by the `content` that `change` makes of it; returns all that `change` did. */
export function changeStore<T extends { readonly content: TrustStoreContent }>(
  path: string,
  root: SigningKey,
  change: (content: TrustStoreContent) => T,
): Promise<T> {
  return whileLocked(path, root, async ({ file, content }) => {
    const changed = change(content);
    const next = expectValue(encodeTrustStore(changed.content), path);
    await writeAtomically(path, signTrustStore(next, root, file.rotations), 0o644);
    return changed;
  });
}

/** Hands the store to another root. Both sign: the old one gives, and the new one shows that somebody holds its key. */
export function changeRoot(path: string, root: SigningKey, next: SigningKey): Promise<TrustStoreContent> {
  return whileLocked(path, root, async ({ file, content, rootLine }) => {
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

export interface ChangedKey {
  readonly keyId: string;
  readonly content: TrustStoreContent;
  /** The entry that the key had; null where it had none. */
  readonly was: StoredKey | null;
  /** The entry that it has now; null where it has none. */
  readonly is: StoredKey | null;
}

/** Trusts one key more. */
export async function addKey(path: string, root: SigningKey, key: NewKey): Promise<ChangedKey> {
  const { keyId, stored } = await readKey(key);
  return changeStore(path, root, (store) => {
    refuseRevoked(store, keyId);
    const listed = findListed(store, keyId);
    if (listed === null) return { keyId, was: null, is: stored, content: withKey(store, stored) };
    throw new UsageError(
      `key ${keyId} is listed already, of ${listed.owner} until ${listed.expires}: --replace gives it the scope and dates of this command, \`sandbus trust remove\` takes it off the list`,
    );
  });
}

/** Gives a listed key another owner, scope or dates. */
export async function replaceKey(path: string, root: SigningKey, key: NewKey): Promise<ChangedKey> {
  const { keyId, stored } = await readKey(key);
  return changeStore(path, root, (store) => {
    refuseRevoked(store, keyId);
    const was = findListed(store, keyId);
    if (was === null) throw new UsageError(`key ${keyId} is not listed: leave out --replace to add it`);
    return { keyId, was, is: stored, content: withReplacedKey(store, was, stored) };
  });
}

/** Takes a key off the list; the beginning of its id is enough. Where it is revoked it stays so. */
export function removeKey(path: string, root: SigningKey, idPrefix: string): Promise<ChangedKey> {
  return changeStore(path, root, (store) => {
    const keyId = listedKeyId(store, idPrefix);
    const was = keyId === null ? null : findListed(store, keyId);
    if (keyId === null || was === null)
      throw new UsageError(`no listed key begins with ${idPrefix}: \`sandbus trust list\` has them`);
    return { keyId, was, is: null, content: withoutKey(store, was) };
  });
}

async function readKey(key: NewKey): Promise<{ keyId: string; stored: StoredKey }> {
  const text = Buffer.from(await readBytes(key.publicKeyFile, 'public key')).toString('utf8');
  const { keyId } = expectValue(publicKeyFromText(text), key.publicKeyFile);
  const stored: StoredKey = {
    publicKey: text.trim(),
    owner: key.owner,
    scope: { plugins: [...key.plugins], tenants: [...key.tenants], gpu: key.gpu, network: key.network },
    notBefore: formatInstant(key.notBeforeMs),
    expires: formatInstant(key.expiresMs),
  };
  return { keyId, stored };
}

/** Somebody else may have a key that was revoked, and nobody knows since when. */
function refuseRevoked({ revokedKeys }: TrustStoreContent, keyId: string): void {
  if (revokedKeys.includes(keyId))
    throw new UsageError(
      `key ${keyId} is revoked, which is for good: make another one with \`sandbus keygen\``,
    );
}

const findListed = (store: TrustStoreContent, keyId: string): StoredKey | null =>
  store.keys.find((key) => keyIdOfStored(key) === keyId) ?? null;

/** The id of the one listed key whose id begins so; null where there is none. */
export function listedKeyId(store: TrustStoreContent, idPrefix: string): string | null {
  const known = store.keys.map(keyIdOfStored).filter((id) => id?.startsWith(idPrefix));
  if (known.length > 1)
    throw new UsageError(`${known.length} keys begin with ${idPrefix}: give more of the key id`);
  return known[0] ?? null;
}

/** Id of a stored key; a key that cannot be read has none. */
export function keyIdOfStored(key: StoredKey): string | null {
  const parsed = publicKeyFromText(key.publicKey);
  return parsed.ok ? keyIdOf(parsed.value.publicKey) : null;
}
