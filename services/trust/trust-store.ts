// The trust store: whose signatures count, for what, until when. This file reads and writes the store's content; how a
// root key signs that content, and which version may follow which, is in signed-trust-store.ts.

import { createHash } from 'node:crypto';
import { z } from 'zod';
import { MAX_SIGNATURES } from './dsse.ts';
import { formatInstant, instant, instantMs, parseDocument, positiveInteger, sha256Hex } from './formats.ts';
import { publicKeyFromText } from './keys.ts';
import { accept, type Checked, quote, reject } from './reasons.ts';

export const MAX_TRUST_STORE_BYTES = 4 * 1024 * 1024;
const MAX_KEYS = 1024;

const namePatterns = z
  .array(
    z
      .string()
      .regex(
        /^[A-Za-z0-9_.+*?-]{1,128}$/,
        'must be a name pattern: 1 to 128 of A-Z, a-z, 0-9 and . _ + - * ?',
      ),
  )
  .min(1)
  .max(256);

const storedKey = z.strictObject({
  publicKey: z.string().max(4096),
  owner: z
    .string()
    .regex(
      /^[\p{L}\p{N}][\p{L}\p{N} .@_+-]{0,127}$/u,
      'must be 1 to 128 letters (no combining marks), digits or (not first) space .@_+-',
    ),
  scope: z.strictObject({
    plugins: namePatterns,
    tenants: namePatterns,
    gpu: z.boolean(),
    network: z.boolean(),
  }),
  notBefore: instant,
  expires: instant,
});

const storeShape = z.strictObject({
  version: positiveInteger,
  expires: instant,
  threshold: z.int().min(1).max(MAX_SIGNATURES),
  keys: z.array(storedKey).max(MAX_KEYS),
  revokedKeys: z.array(sha256Hex),
  revokedDigests: z.array(sha256Hex),
});

/** The store's content as it stands in the file. */
export type TrustStoreContent = z.infer<typeof storeShape>;
export type StoredKey = TrustStoreContent['keys'][number];
export type KeyScope = Readonly<StoredKey['scope']>;

export type TrustedKey = {
  readonly keyId: string;
  readonly publicKey: Uint8Array;
  readonly owner: string;
  readonly scope: KeyScope;
  readonly notBeforeMs: number;
  readonly expiresMs: number;
};

/** A store that was read without a fault. Treat it as immutable: decisions are cached by its digest. */
export type TrustStore = {
  readonly version: number;
  readonly expiresMs: number;
  /** How many different owners must sign a plugin. */
  readonly threshold: number;
  readonly keys: readonly TrustedKey[];
  readonly revokedKeys: ReadonlySet<string>;
  readonly revokedDigests: ReadonlySet<string>;
  /** SHA-256 of the content's exact bytes, in hex. */
  readonly digest: string;
};

/** Reads the content of a trust store. One key that cannot be used makes the whole store unusable. */
export function parseTrustStore(bytes: Uint8Array): Checked<TrustStore> {
  const content = readTrustStoreContent(bytes);
  if (!content.ok) return content;
  const keys = readKeys(content.value.keys);
  if (!keys.ok) return keys;
  const { version, expires, threshold, revokedKeys, revokedDigests } = content.value;
  return accept({
    version,
    expiresMs: instantMs(expires),
    threshold,
    keys: keys.value,
    revokedKeys: new Set(revokedKeys),
    revokedDigests: new Set(revokedDigests),
    digest: createHash('sha256').update(bytes).digest('hex'),
  });
}

/** The content as it stands in the file, for commands that list or change it. Keys are not checked here. */
export function readTrustStoreContent(bytes: Uint8Array): Checked<TrustStoreContent> {
  const bounds = { maxBytes: MAX_TRUST_STORE_BYTES, maxDepth: 5, maxValues: 200_000 };
  return parseDocument(bytes, bounds, storeShape, 'trust store');
}

/** Writes content to the exact bytes that are signed and published; refuses what could not be read back. */
export function encodeTrustStore(content: TrustStoreContent): Checked<Uint8Array> {
  const bytes = new Uint8Array(Buffer.from(`${JSON.stringify(content, null, 2)}\n`));
  const parsed = parseTrustStore(bytes);
  return parsed.ok ? accept(bytes) : parsed;
}

/** The first version of a new store: it trusts nobody yet. */
export function emptyTrustStore(expiresMs: number, threshold = 1): TrustStoreContent {
  const expires = formatInstant(expiresMs);
  return { version: 1, expires, threshold, keys: [], revokedKeys: [], revokedDigests: [] };
}

/** The next version with one key more. */
export function withKey(content: TrustStoreContent, key: StoredKey): TrustStoreContent {
  return { ...content, version: content.version + 1, keys: [...content.keys, key] };
}

/** The next version without a listed key. Where it is revoked it stays so. */
export function withoutKey(content: TrustStoreContent, listed: StoredKey): TrustStoreContent {
  const keys = new Set(content.keys);
  keys.delete(listed);
  return { ...content, version: content.version + 1, keys: [...keys] };
}

/** The next version with this key instead of a listed one. */
export function withReplacedKey(
  content: TrustStoreContent,
  listed: StoredKey,
  key: StoredKey,
): TrustStoreContent {
  const others = withoutKey(content, listed);
  return { ...others, keys: [...others.keys, key] };
}

/** The next version with this key id revoked, for good. The key stays listed, so that refusals can name its owner. */
export function withRevokedKey(content: TrustStoreContent, keyId: string): TrustStoreContent {
  const revokedKeys = [...new Set([...content.revokedKeys, keyId])];
  return { ...content, version: content.version + 1, revokedKeys };
}

/** The next version with this plugin file revoked, whoever signed it. */
export function withRevokedDigest(content: TrustStoreContent, sha256: string): TrustStoreContent {
  const revokedDigests = [...new Set([...content.revokedDigests, sha256])];
  return { ...content, version: content.version + 1, revokedDigests };
}

/** The next version with a later end date. */
export function withExpiry(content: TrustStoreContent, expiresMs: number): TrustStoreContent {
  return { ...content, version: content.version + 1, expires: formatInstant(expiresMs) };
}

function readKeys(stored: readonly StoredKey[]): Checked<TrustedKey[]> {
  const keys: TrustedKey[] = [];
  const seen = new Set<string>();
  for (const [index, key] of stored.entries()) {
    const where = `trust store: key ${index} of ${quote(key.owner)}`;
    const parsed = publicKeyFromText(key.publicKey);
    if (!parsed.ok) return reject('MALFORMED', `${where}: ${parsed.detail}`);
    const { keyId, publicKey } = parsed.value;
    if (seen.has(keyId)) return reject('MALFORMED', `${where}: the key ${keyId} is listed twice`);
    seen.add(keyId);
    const validity = { notBeforeMs: instantMs(key.notBefore), expiresMs: instantMs(key.expires) };
    if (!(validity.notBeforeMs < validity.expiresMs)) {
      return reject('MALFORMED', `${where}: "expires" must be later than "notBefore"`);
    }
    keys.push({ keyId, publicKey, owner: key.owner, scope: key.scope, ...validity });
  }
  return accept(keys);
}
