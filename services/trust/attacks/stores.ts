// For tests only: what can be wrong with a trust store file, its roots and its place in history.

import { createHash } from 'node:crypto';
import { encodeEnvelope, sealEnvelope } from '../dsse.ts';
import {
  ALICE,
  bend,
  expectValue,
  type JsonObject,
  MALLORY,
  PLUGIN_SHA256,
  storeContent,
  testKey,
} from '../fixture.ts';
import { publicKeyToPem, type SigningKey } from '../keys.ts';
import type { RejectReason } from '../reasons.ts';
import {
  markOf,
  openTrustStore,
  ROTATION_PAYLOAD_TYPE,
  readTrustStoreFile,
  rotateRoot,
  type SignedTrustStore,
  signTrustStore,
  type TrustStoreMark,
} from '../signed-trust-store.ts';
import { encodeTrustStore, type TrustStoreContent } from '../trust-store.ts';

export const ROOT = testKey('root');
export const ROOT_2 = testKey('second root');
export const ROOT_3 = testKey('third root');

export type StoreCase = {
  readonly name: string;
  /** null where the file must be accepted. */
  readonly expected: RejectReason | null;
  readonly file: Uint8Array;
  readonly pinned: SigningKey;
  readonly mark: TrustStoreMark | null;
};

export function contentBytes(changes: Partial<TrustStoreContent> = {}): Uint8Array {
  return expectValue(encodeTrustStore(storeContent(changes)));
}

/** A store signed by the last of these roots, with a rotation for each step. */
export function fileSignedBy(roots: readonly SigningKey[], content = contentBytes()): Uint8Array {
  const [first = ROOT, ...later] = roots;
  let file = signTrustStore(content, first);
  let current = first;
  for (const next of later) {
    file = rotateRoot(expectValue(readTrustStoreFile(file)), current, next);
    current = next;
  }
  return file;
}

type Row = { readonly file: Uint8Array; readonly pinned?: SigningKey; readonly mark?: TrustStoreMark };

function row(expected: RejectReason | null, name: string, { file, pinned = ROOT, mark }: Row): StoreCase {
  return { name, expected, file, pinned, mark: mark ?? null };
}

function bentFile(path: string, value: unknown, roots = [ROOT, ROOT_2]): Uint8Array {
  const json: JsonObject = JSON.parse(Buffer.from(fileSignedBy(roots)).toString());
  return Buffer.from(JSON.stringify(bend(json, path, value)));
}

/** Content that encodeTrustStore would not write, signed by the root all the same. */
function signedContent(path: string, value: unknown): Uint8Array {
  return signTrustStore(Buffer.from(JSON.stringify(bend({ ...storeContent() }, path, value))), ROOT);
}

/** A rotation to MALLORY's key that some of the needed signatures are missing from. */
function halfRotation(signers: readonly SigningKey[], payloadType = ROTATION_PAYLOAD_TYPE): Uint8Array {
  const pem = (key: SigningKey): string => publicKeyToPem(key.publicKey);
  const payload = Buffer.from(JSON.stringify({ oldRoot: pem(ROOT), newRoot: pem(MALLORY) }));
  const rotation = sealEnvelope(payloadType, payload, signers);
  return signTrustStore(contentBytes(), MALLORY, [rotation]);
}

/** Two rotations that do not meet: the first to the second root, the other from the third to MALLORY. */
function brokenLine(): Uint8Array {
  const first = expectValue(readTrustStoreFile(fileSignedBy([ROOT, ROOT_2]))).rotations;
  const second = expectValue(readTrustStoreFile(fileSignedBy([ROOT_3, MALLORY]))).rotations;
  return signTrustStore(contentBytes(), MALLORY, [...first, ...second]);
}

function wrongPayloadType(): Uint8Array {
  const store = sealEnvelope('application/vnd.in-toto+json', contentBytes(), [ROOT]);
  const file = { rotations: [], store: JSON.parse(Buffer.from(encodeEnvelope(store)).toString()) };
  return Buffer.from(JSON.stringify(file));
}

const DIGEST_7 = 'd'.repeat(64);
const mark = (changes: Partial<TrustStoreMark>): TrustStoreMark => ({
  version: 6,
  digest: DIGEST_7,
  rootKeyId: ROOT.keyId,
  ...changes,
});
const key = { ...storeContent().keys[0] } as JsonObject;

const FILES: readonly StoreCase[] = [
  row(null, 'a file of the pinned root', { file: fileSignedBy([ROOT]) }),
  row('MALFORMED', 'an empty file', { file: new Uint8Array() }),
  row('MALFORMED', 'a store that nobody signed', { file: contentBytes() }),
  row('MALFORMED', 'half a file', { file: fileSignedBy([ROOT]).subarray(0, 500) }),
  row('UNSIGNED', 'no signature', { file: bentFile('store.signatures', []) }),
  row('UNSIGNED', 'a rotation without signature', { file: bentFile('rotations.0.signatures', []) }),
  row('MALFORMED', 'an unknown field', { file: bentFile('comment', 1) }),
  row('MALFORMED', 'a file of 9 MiB', { file: new Uint8Array(9 * 1024 * 1024) }),
  row('TRUST_STORE_UNTRUSTED', 'a file of a stranger', { file: fileSignedBy([MALLORY]) }),
  row('TRUST_STORE_UNTRUSTED', 'a file of a listed signer', { file: fileSignedBy([ALICE]) }),
  row('TRUST_STORE_UNTRUSTED', 'other content under the signature', {
    file: bentFile('store.payload', Buffer.from(contentBytes({ version: 8 })).toString('base64'), [ROOT]),
  }),
  row('MALFORMED', 'a store signed as a statement', { file: wrongPayloadType() }),
  row('MALFORMED', 'content that is no store', { file: signTrustStore(Buffer.from('{}'), ROOT) }),
  row('MALFORMED', 'a key listed twice', { file: signedContent('keys', [key, { ...key, owner: 'Bob' }]) }),
  row('MALFORMED', 'a key of small order', {
    file: signedContent('keys', [{ ...key, publicKey: smallOrder() }]),
  }),
  row('MALFORMED', 'a private key', {
    file: signedContent('keys', [{ ...key, publicKey: 'BEGIN PRIVATE KEY' }]),
  }),
  row('MALFORMED', 'a key that ends before it begins', {
    file: signedContent('keys', [{ ...key, expires: key.notBefore }]),
  }),
  row('MALFORMED', 'a scope without tenants', { file: signedContent('keys.0.scope.tenants', []) }),
  row('MALFORMED', 'a scope with a misspelt field', { file: signedContent('keys.0.scope.gpus', true) }),
  row('MALFORMED', 'a threshold of none', { file: signedContent('threshold', 0) }),
  row('MALFORMED', 'a threshold that nobody can meet', { file: signedContent('threshold', 9) }),
  row('MALFORMED', 'a revoked key in capitals', {
    file: signedContent('revokedKeys', [ALICE.keyId.toUpperCase()]),
  }),
  row('MALFORMED', 'no list of revoked files', { file: signedContent('revokedDigests', undefined) }),
  row(null, 'revoked keys and files', { file: signedContent('revokedDigests', [PLUGIN_SHA256]) }),
];

function smallOrder(): string {
  return Buffer.from(`01${'00'.repeat(31)}`, 'hex').toString('base64');
}

const ROTATIONS: readonly StoreCase[] = [
  row(null, 'a rotated root, the first pinned', { file: fileSignedBy([ROOT, ROOT_2, ROOT_3]) }),
  row(null, 'a rotated root, the second pinned', {
    file: fileSignedBy([ROOT, ROOT_2, ROOT_3]),
    pinned: ROOT_2,
  }),
  row(null, 'a rotated root, the last pinned', {
    file: fileSignedBy([ROOT, ROOT_2, ROOT_3]),
    pinned: ROOT_3,
  }),
  row('TRUST_STORE_UNTRUSTED', 'the old root after the rotation', {
    file: fileSignedBy([ROOT]),
    pinned: ROOT_2,
  }),
  row('TRUST_STORE_UNTRUSTED', 'a rotation without the old root', { file: halfRotation([MALLORY]) }),
  row('TRUST_STORE_UNTRUSTED', 'a rotation without the new root', { file: halfRotation([ROOT]) }),
  row('MALFORMED', 'a statement for a rotation', {
    file: halfRotation([ROOT, MALLORY], 'application/vnd.in-toto+json'),
  }),
  row('TRUST_STORE_UNTRUSTED', 'rotations that do not meet', { file: brokenLine() }),
  row('TRUST_STORE_UNTRUSTED', 'a rotation back to a replaced root', {
    file: fileSignedBy([ROOT, ROOT_2, ROOT]),
  }),
  row('TRUST_STORE_UNTRUSTED', 'the content signed by the root before', {
    file: bentFile('store', JSON.parse(Buffer.from(fileSignedBy([ROOT])).toString()).store),
  }),
  row('MALFORMED', '33 rotations', { file: bentFile('rotations', new Array(33).fill({})) }),
];

const sameDigest = (content: Uint8Array): TrustStoreMark => mark({ version: 7, digest: sha256(content) });

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

const HISTORY: readonly StoreCase[] = [
  row(null, 'a newer version', { file: fileSignedBy([ROOT]), mark: mark({}) }),
  row(null, 'the same version again', { file: fileSignedBy([ROOT]), mark: sameDigest(contentBytes()) }),
  row('TRUST_STORE_OUTDATED', 'an older version', { file: fileSignedBy([ROOT]), mark: mark({ version: 8 }) }),
  row('TRUST_STORE_OUTDATED', 'the same version with other content', {
    file: fileSignedBy([ROOT]),
    mark: mark({ version: 7 }),
  }),
  row(null, 'a newer version of a new root', { file: fileSignedBy([ROOT, ROOT_2]), mark: mark({}) }),
  row('TRUST_STORE_OUTDATED', 'a replaced root with a high version', {
    file: fileSignedBy([ROOT], contentBytes({ version: 999 })),
    mark: mark({ rootKeyId: ROOT_2.keyId }),
  }),
  row('TRUST_STORE_OUTDATED', 'a replaced root that rotates to a key of its own', {
    file: fileSignedBy([ROOT, MALLORY], contentBytes({ version: 999 })),
    mark: mark({ rootKeyId: ROOT_2.keyId }),
  }),
];

export const STORE_CASES: readonly StoreCase[] = [...FILES, ...ROTATIONS, ...HISTORY];

export type ReloadCase = {
  readonly name: string;
  readonly current: SignedTrustStore | null;
  readonly bytes: Uint8Array | null;
  readonly mark: TrustStoreMark | null;
  /** The version in force afterwards; null where everything is refused. */
  readonly version: number | null;
  readonly problem: RejectReason | null;
};

const CURRENT = expectValue(openTrustStore(fileSignedBy([ROOT]), ROOT));
const NEXT = contentBytes({ version: 8, revokedKeys: [ALICE.keyId] });

function reload(name: string, bytes: Uint8Array | null, then: Partial<ReloadCase>): ReloadCase {
  return { name, bytes, current: CURRENT, mark: null, version: 7, problem: null, ...then };
}

export const RELOAD_CASES: readonly ReloadCase[] = [
  reload('a newer store takes over', fileSignedBy([ROOT], NEXT), { version: 8 }),
  reload('the same file changes nothing', fileSignedBy([ROOT]), {}),
  reload('the first file comes into force', fileSignedBy([ROOT]), { current: null }),
  reload('a damaged file leaves the old store in force', fileSignedBy([ROOT], NEXT).subarray(0, 900), {
    problem: 'MALFORMED',
  }),
  reload('a forged file leaves the old store in force', fileSignedBy([ALICE], NEXT), {
    problem: 'TRUST_STORE_UNTRUSTED',
  }),
  reload('an older file leaves the old store in force', fileSignedBy([ROOT], contentBytes({ version: 6 })), {
    problem: 'TRUST_STORE_OUTDATED',
  }),
  reload('a missing file refuses everything', null, { version: null, problem: 'NO_TRUST_STORE' }),
  reload('a damaged first file refuses everything', new Uint8Array(5), {
    current: null,
    version: null,
    problem: 'MALFORMED',
  }),
  reload('what other machines have seen counts too', fileSignedBy([ROOT]), {
    current: null,
    mark: { ...markOf(CURRENT), version: 9 },
    version: null,
    problem: 'TRUST_STORE_OUTDATED',
  }),
];
