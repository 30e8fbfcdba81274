// Ed25519 keys: made, read and written as ordinary PEM, so that openssl can make and use the same files.
// Private keys are PKCS#8, public keys SubjectPublicKeyInfo.

import { createHash, createPrivateKey, randomBytes } from 'node:crypto';
import * as ed25519 from '@noble/ed25519';
import { decodeBase64 } from './formats.ts';
import { accept, type Checked, reject } from './reasons.ts';
import { PUBLIC_KEY_BYTES } from './signature.ts';

export type PublicKey = {
  /** SHA-256 of the raw public key, in hex. */
  readonly keyId: string;
  readonly publicKey: Uint8Array;
};

export type SigningKey = PublicKey & {
  /** The private key's 32-byte seed. Keep it out of logs: print `keyId` only. */
  readonly seed: Uint8Array;
};

const MAX_PEM_CHARACTERS = 4096;

/** What precedes the 32 key bytes in DER; RFC 8410 leaves no choice for public keys. */
const SPKI_PREFIX = Buffer.from('302a300506032b6570032100', 'hex');
const PKCS8_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex');

export function keyIdOf(publicKey: Uint8Array): string {
  return createHash('sha256').update(publicKey).digest('hex');
}

export function generateKey(): SigningKey {
  return signingKeyFromSeed(randomBytes(32));
}

export function signingKeyFromSeed(seed: Uint8Array): SigningKey {
  const publicKey = ed25519.getPublicKey(seed);
  return { keyId: keyIdOf(publicKey), publicKey, seed: new Uint8Array(seed) };
}

export function privateKeyToPem(key: SigningKey): string {
  return pem('PRIVATE KEY', Buffer.concat([PKCS8_PREFIX, key.seed]));
}

export function publicKeyToPem(publicKey: Uint8Array): string {
  return pem('PUBLIC KEY', Buffer.concat([SPKI_PREFIX, publicKey]));
}

/** Reads an unencrypted PKCS#8 PEM, as `sandbus keygen` and `openssl genpkey -algorithm ed25519` write it. */
export function privateKeyFromPem(text: string): Checked<SigningKey> {
  if (text.length > MAX_PEM_CHARACTERS)
    return reject('MALFORMED', 'private key: too long for a PEM of one key');
  if (text.includes('BEGIN ENCRYPTED PRIVATE KEY')) {
    return reject('MALFORMED', 'private key: it is encrypted; decrypt it with `openssl pkey` first');
  }
  if (!text.includes('BEGIN PRIVATE KEY')) {
    return reject('MALFORMED', 'private key: no "BEGIN PRIVATE KEY" block; make one with `sandbus keygen`');
  }
  try {
    const jwk = createPrivateKey({ key: text, format: 'pem', type: 'pkcs8' }).export({ format: 'jwk' });
    const seed = jwk.crv === 'Ed25519' && jwk.d !== undefined ? decodeBase64(jwk.d) : null;
    return seed === null
      ? reject('MALFORMED', 'private key: not an Ed25519 key')
      : accept(signingKeyFromSeed(seed));
  } catch {
    return reject('MALFORMED', 'private key: the PEM block does not hold a PKCS#8 key');
  }
}

/** Reads a public key as PEM or as the Base64 of its 32 bytes, and refuses keys that no honest signer can have. */
export function publicKeyFromText(text: string): Checked<PublicKey> {
  if (text.length > MAX_PEM_CHARACTERS) return reject('MALFORMED', 'public key: too long for one key');
  if (text.includes('PRIVATE KEY')) {
    return reject(
      'MALFORMED',
      'public key: this is a PRIVATE key; never share it, use its public half, as in me.pem.pub',
    );
  }
  const raw = text.includes('-----') ? rawFromPem(text) : decodeBase64(text.trim());
  if (raw === null)
    return reject('MALFORMED', 'public key: neither an Ed25519 PEM (SPKI) nor Base64 of 32 bytes');
  return checkPublicKey(raw);
}

/**
 * A key must be a canonical point in the group of prime order. With a point of small order anybody can make signatures
 * that verify; with a mixed one, verifiers disagree about which signatures do.
 */
export function checkPublicKey(raw: Uint8Array): Checked<PublicKey> {
  if (raw.length !== PUBLIC_KEY_BYTES) {
    return reject('MALFORMED', `public key: ${raw.length} bytes, an Ed25519 key has ${PUBLIC_KEY_BYTES}`);
  }
  try {
    const point = ed25519.Point.fromBytes(raw, false);
    if (point.isSmallOrder())
      return reject('MALFORMED', 'public key: a point of small order, which anybody can sign for');
    if (!point.isTorsionFree()) return reject('MALFORMED', 'public key: not in the group of prime order');
  } catch {
    return reject('MALFORMED', 'public key: not a canonical point of the curve');
  }
  return accept({ keyId: keyIdOf(raw), publicKey: new Uint8Array(raw) });
}

const PEM_BLOCK = /^-----BEGIN PUBLIC KEY-----\r?\n([A-Za-z0-9+/=\r\n]+)-----END PUBLIC KEY-----$/;

function rawFromPem(text: string): Uint8Array | null {
  const body = PEM_BLOCK.exec(text.trim())?.[1];
  const der = body === undefined ? null : decodeBase64(body.replace(/[\r\n]/g, ''));
  if (der === null || der.length !== SPKI_PREFIX.length + PUBLIC_KEY_BYTES) return null;
  return SPKI_PREFIX.equals(der.subarray(0, SPKI_PREFIX.length)) ? der.subarray(SPKI_PREFIX.length) : null;
}

function pem(label: string, der: Uint8Array): string {
  return `-----BEGIN ${label}-----\n${Buffer.from(der).toString('base64')}\n-----END ${label}-----\n`;
}
