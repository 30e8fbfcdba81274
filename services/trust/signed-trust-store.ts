// The trust store as a file: content signed by a root key, and the record of how roots followed one another.
//
// The configuration pins one root key. A root is replaced by a rotation, signed by the old root and by the new one (so
// that nobody rotates to a key that nobody holds). The file carries all rotations in order; together they are the line
// of roots, whose last key signs the content. The pinned key must be on that line, so a machine may pin any root.
//
// Signatures alone do not stop an old file from coming back. For that, the highest version seen is kept outside (a
// TrustStoreMark, shared by all machines), and a store may only follow it: never a lower version, never the same
// version with other content, never a line of roots that leaves out the root seen last. The third rule is what takes
// the power from a root that was replaced.

import { z } from 'zod';
import {
  decodeEnvelope,
  type Envelope,
  envelopeJson,
  envelopeShape,
  preAuthenticationEncoding,
  sealEnvelope,
} from './dsse.ts';
import { parseDocument, positiveInteger, sha256Hex } from './formats.ts';
import { type PublicKey, publicKeyFromText, publicKeyToPem, type SigningKey } from './keys.ts';
import { accept, type Checked, quote, type Rejection, reject } from './reasons.ts';
import { verifyStrict } from './signature.ts';
import { MAX_TRUST_STORE_BYTES, parseTrustStore, type TrustStore } from './trust-store.ts';

export const TRUST_STORE_PAYLOAD_TYPE = 'application/vnd.sandbus.trust-store+json';
export const ROTATION_PAYLOAD_TYPE = 'application/vnd.sandbus.root-rotation+json';

/** Base64 makes the content a third larger. */
const MAX_FILE_BYTES = 2 * MAX_TRUST_STORE_BYTES;
const MAX_ROTATIONS = 32;
const MAX_ROTATION_BYTES = 4096;

const fileShape = z.strictObject({
  rotations: z.array(envelopeShape).max(MAX_ROTATIONS),
  store: envelopeShape,
});
const rotationShape = z.strictObject({ oldRoot: z.string().max(1024), newRoot: z.string().max(1024) });
const markShape = z.strictObject({ version: positiveInteger, digest: sha256Hex, rootKeyId: sha256Hex });

/** A trust store whose signature and line of roots were checked. */
export type SignedTrustStore = {
  readonly store: TrustStore;
  /** Key ids of the roots, oldest first; the last one signed this store. */
  readonly rootLine: readonly string[];
};

/** The newest store that any machine has accepted. Kept where all of them see it, changed by compare-and-set only. */
export type TrustStoreMark = Readonly<z.infer<typeof markShape>>;

/** The parts of the file, without a look at any signature. For commands that change the file. */
export type TrustStoreFile = { readonly rotations: readonly Envelope[]; readonly store: Envelope };

export function readTrustStoreFile(bytes: Uint8Array): Checked<TrustStoreFile> {
  const bounds = { maxBytes: MAX_FILE_BYTES, maxDepth: 5, maxValues: 2000 };
  const json = parseDocument(bytes, bounds, fileShape, 'trust store file');
  if (!json.ok) return json;
  const rotations: Envelope[] = [];
  for (const item of json.value.rotations) {
    const rotation = decodeEnvelope(item);
    if (!rotation.ok) return rotation;
    rotations.push(rotation.value);
  }
  const store = decodeEnvelope(json.value.store);
  return store.ok ? accept({ rotations, store: store.value }) : store;
}

/** Reads a trust store file and accepts it only where the line of roots leads from the pinned key to its signature. */
export function openTrustStore(bytes: Uint8Array, pinnedRoot: PublicKey): Checked<SignedTrustStore> {
  const file = readTrustStoreFile(bytes);
  if (!file.ok) return file;
  const line = followRotations(file.value.rotations, pinnedRoot);
  if (!line.ok) return line;
  if (!line.value.some((root) => root.keyId === pinnedRoot.keyId)) {
    const named = line.value.map((root) => root.keyId).join(', ');
    return untrusted(`the pinned root ${pinnedRoot.keyId} is not among the roots of the file (${named})`);
  }
  const { store } = file.value;
  const root = line.value.at(-1) ?? pinnedRoot;
  if (store.payloadType !== TRUST_STORE_PAYLOAD_TYPE) {
    return reject(
      'MALFORMED',
      `trust store file: the payload type of the store is ${quote(store.payloadType)}`,
    );
  }
  if (!isSignedBy(store, root)) return untrusted(`root ${root.keyId} has not signed this content`);
  const content = parseTrustStore(store.payload);
  return content.ok
    ? accept({ store: content.value, rootLine: line.value.map(({ keyId }) => keyId) })
    : content;
}

/** Whether a store may be used after what was seen before; null means yes. */
export function checkFollows(
  { store, rootLine }: SignedTrustStore,
  mark: TrustStoreMark | null,
): Rejection | null {
  if (mark === null) return null;
  if (!rootLine.includes(mark.rootKeyId)) {
    return reject(
      'TRUST_STORE_OUTDATED',
      `its roots (${rootLine.join(', ')}) do not continue root ${mark.rootKeyId}`,
    );
  }
  if (store.version < mark.version) {
    return reject(
      'TRUST_STORE_OUTDATED',
      `version ${store.version}, version ${mark.version} was seen already`,
    );
  }
  if (store.version === mark.version && store.digest !== mark.digest) {
    const detail = `version ${store.version} with digest ${store.digest}, seen before with ${mark.digest}`;
    return reject('TRUST_STORE_OUTDATED', detail);
  }
  return null;
}

/** The mark that a store leaves when it comes into use. */
export function markOf({ store, rootLine }: SignedTrustStore): TrustStoreMark {
  return { version: store.version, digest: store.digest, rootKeyId: rootLine.at(-1) ?? '' };
}

export function parseTrustStoreMark(bytes: Uint8Array): Checked<TrustStoreMark> {
  return parseDocument(bytes, { maxBytes: 1024, maxDepth: 1, maxValues: 16 }, markShape, 'trust store mark');
}

export function encodeTrustStoreMark(mark: TrustStoreMark): Uint8Array {
  return Buffer.from(JSON.stringify(mark));
}

export type Reload = {
  /** The store to decide with from now on; null refuses everything. */
  readonly inForce: SignedTrustStore | null;
  /** What to tell the operator, loudly; null when all is well. */
  readonly problem: Rejection | null;
};

/**
 * What is in force after the file was read again. A damaged, forged or older file changes nothing, so that a failed
 * copy stops no work and brings no revoked key back. A file that is gone or unreadable (`bytes` null) refuses
 * everything: taking it away is the operator's emergency brake.
 */
export function reloadTrustStore(
  current: SignedTrustStore | null,
  bytes: Uint8Array | null,
  trust: { readonly pinnedRoot: PublicKey; readonly mark: TrustStoreMark | null },
): Reload {
  if (bytes === null) {
    return {
      inForce: null,
      problem: reject('NO_TRUST_STORE', 'the trust store file is missing or unreadable'),
    };
  }
  const opened = openTrustStore(bytes, trust.pinnedRoot);
  if (!opened.ok) return { inForce: current, problem: opened };
  const problem =
    checkFollows(opened.value, trust.mark) ??
    (current === null ? null : checkFollows(opened.value, markOf(current)));
  return problem === null ? { inForce: opened.value, problem } : { inForce: current, problem };
}

/** Signs the exact bytes of a store's content (see encodeTrustStore) and writes the file. */
export function signTrustStore(
  content: Uint8Array,
  root: SigningKey,
  rotations: readonly Envelope[] = [],
): Uint8Array {
  return encodeFile(rotations, sealEnvelope(TRUST_STORE_PAYLOAD_TYPE, content, [root]));
}

/** Replaces the root: adds the rotation to the file and signs the unchanged content with the new root. */
export function rotateRoot(file: TrustStoreFile, oldRoot: SigningKey, newRoot: SigningKey): Uint8Array {
  const payload = { oldRoot: publicKeyToPem(oldRoot.publicKey), newRoot: publicKeyToPem(newRoot.publicKey) };
  const rotation = sealEnvelope(ROTATION_PAYLOAD_TYPE, Buffer.from(JSON.stringify(payload)), [
    oldRoot,
    newRoot,
  ]);
  return signTrustStore(file.store.payload, newRoot, [...file.rotations, rotation]);
}

/** The line of roots, oldest first. Without rotations it is the pinned key alone. */
function followRotations(
  rotations: readonly Envelope[],
  pinnedRoot: PublicKey,
): Checked<readonly PublicKey[]> {
  const line: PublicKey[] = [];
  for (const [index, envelope] of rotations.entries()) {
    const rotation = readRotation(envelope);
    if (!rotation.ok)
      return reject(rotation.reason, `trust store file: rotation ${index}: ${rotation.detail}`);
    const { oldRoot, newRoot } = rotation.value;
    const last = line.at(-1);
    if (last === undefined) line.push(oldRoot);
    else if (last.keyId !== oldRoot.keyId)
      return untrusted(`rotation ${index} does not start at root ${last.keyId}`);
    if (line.some((root) => root.keyId === newRoot.keyId)) {
      return untrusted(`rotation ${index} returns to root ${newRoot.keyId}, which was replaced`);
    }
    line.push(newRoot);
  }
  return accept(line.length === 0 ? [pinnedRoot] : line);
}

type Rotation = { readonly oldRoot: PublicKey; readonly newRoot: PublicKey };

function readRotation(envelope: Envelope): Checked<Rotation> {
  if (envelope.payloadType !== ROTATION_PAYLOAD_TYPE) {
    return reject('MALFORMED', `the payload type is ${quote(envelope.payloadType)}`);
  }
  const bounds = { maxBytes: MAX_ROTATION_BYTES, maxDepth: 1, maxValues: 16 };
  const document = parseDocument(envelope.payload, bounds, rotationShape, 'rotation');
  if (!document.ok) return document;
  const oldRoot = publicKeyFromText(document.value.oldRoot);
  if (!oldRoot.ok) return oldRoot;
  const newRoot = publicKeyFromText(document.value.newRoot);
  if (!newRoot.ok) return newRoot;
  for (const root of [oldRoot.value, newRoot.value]) {
    if (!isSignedBy(envelope, root))
      return reject('TRUST_STORE_UNTRUSTED', `root ${root.keyId} has not signed it`);
  }
  return accept({ oldRoot: oldRoot.value, newRoot: newRoot.value });
}

function isSignedBy(envelope: Envelope, { publicKey }: PublicKey): boolean {
  const message = preAuthenticationEncoding(envelope.payloadType, envelope.payload);
  return envelope.signatures.some(({ signature }) => verifyStrict(publicKey, message, signature));
}

function untrusted(detail: string): Rejection {
  return reject('TRUST_STORE_UNTRUSTED', `trust store file: ${detail}`);
}

function encodeFile(rotations: readonly Envelope[], store: Envelope): Uint8Array {
  const json = { rotations: rotations.map(envelopeJson), store: envelopeJson(store) };
  return Buffer.from(`${JSON.stringify(json, null, 2)}\n`);
}
