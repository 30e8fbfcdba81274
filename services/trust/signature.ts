// Ed25519 signatures, judged strictly.
//
// A signature counts only when two independent implementations agree: OpenSSL through node:crypto, which is quick and
// uses the equation without the cofactor, and @noble/ed25519 in its strict mode, which refuses points that are not in
// canonical form and public keys of small order. Each accepts some oddities that the other refuses; what both accept
// is what every other verifier accepts as well. OpenSSL comes first, so that a wrong signature costs a tenth.

import { createHash, createPublicKey, verify as opensslVerify } from 'node:crypto';
import * as ed25519 from '@noble/ed25519';
import type { SigningKey } from './keys.ts';

export const SIGNATURE_BYTES = 64;
export const PUBLIC_KEY_BYTES = 32;

// The library's synchronous functions need a SHA-512; Node's is OpenSSL's, many times faster than one in JavaScript.
ed25519.hashes.sha512 = (message) => new Uint8Array(createHash('sha512').update(message).digest());

/** Whether this key made this signature over this message. Malformed input of any kind is `false`. */
export function verifyStrict(publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean {
  if (publicKey.length !== PUBLIC_KEY_BYTES || signature.length !== SIGNATURE_BYTES) return false;
  return verifyWithOpenssl(publicKey, message, signature) && verifyWithNoble(publicKey, message, signature);
}

export function verifyWithOpenssl(
  publicKey: Uint8Array,
  message: Uint8Array,
  signature: Uint8Array,
): boolean {
  try {
    const x = Buffer.from(publicKey).toString('base64url');
    const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
    return opensslVerify(null, message, key, signature);
  } catch {
    return false;
  }
}

export function verifyWithNoble(publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean {
  try {
    return ed25519.verify(signature, message, publicKey, { zip215: false });
  } catch {
    return false;
  }
}

/** Signs, and checks the result at once: a faulty computation must not leave this machine. */
export function signMessage(key: SigningKey, message: Uint8Array): Uint8Array {
  const signature = ed25519.sign(message, key.seed);
  if (!verifyStrict(key.publicKey, message, signature)) {
    throw new Error(`signing with key ${key.keyId} gave a signature that does not verify`);
  }
  return signature;
}
