// From an envelope of unknown origin to a statement and the listed keys that signed it. What is found here depends on
// nothing but the envelope's bytes and the trust store, so it may be remembered; time, tenant and limits come later.

import { createHash } from 'node:crypto';
import { type Envelope, parseEnvelope, preAuthenticationEncoding } from './dsse.ts';
import { accept, type Checked, quote, type Rejection, reject } from './reasons.ts';
import { verifyStrict } from './signature.ts';
import { type PluginStatement, parseStatement, STATEMENT_PAYLOAD_TYPE } from './statement.ts';
import type { TrustedKey, TrustStore } from './trust-store.ts';

/** How many pairs of signature and key are tried for one envelope, so that no envelope makes unbounded work. */
const MAX_ATTEMPTS = 128;

export type AuthenticStatement = {
  readonly statement: PluginStatement;
  /** Listed keys whose signature verifies and that are not revoked; each once. */
  readonly signers: readonly TrustedKey[];
};

export function authenticate(envelopeBytes: Uint8Array, store: TrustStore): Checked<AuthenticStatement> {
  const envelope = parseEnvelope(envelopeBytes);
  if (!envelope.ok) return envelope;
  const { payloadType, payload } = envelope.value;
  if (payloadType !== STATEMENT_PAYLOAD_TYPE) {
    const detail = `envelope: the payload type is ${quote(payloadType)}, a plugin's is ${STATEMENT_PAYLOAD_TYPE}`;
    return reject('MALFORMED', detail);
  }
  const verified = findSigners(envelope.value, store.keys);
  if (verified.length === 0) return explainNoSigner(envelope.value, store);
  const signers = verified.filter((key) => !store.revokedKeys.has(key.keyId));
  if (signers.length === 0)
    return reject('REVOKED', `signed by ${nameKeys(verified)}: revoked in the trust store`);
  // Only bytes that a trusted key signed are read as a statement.
  const statement = parseStatement(payload);
  return statement.ok ? accept({ statement: statement.value, signers }) : statement;
}

/** `key 1f… of Alice`, for details. */
export function nameKeys(keys: readonly TrustedKey[]): string {
  return keys.map((key) => `key ${key.keyId} of ${key.owner}`).join(', ');
}

/** The listed keys that signed. Hints only order the search: the key that a signature names is tried first. */
function findSigners(envelope: Envelope, keys: readonly TrustedKey[]): TrustedKey[] {
  const message = preAuthenticationEncoding(envelope.payloadType, envelope.payload);
  const found = new Set<TrustedKey>();
  let attempts = 0;
  for (const { keyIdHint, signature } of envelope.signatures) {
    for (const key of hintedFirst(keys, keyIdHint)) {
      if (found.has(key)) continue;
      if (attempts >= MAX_ATTEMPTS) return [...found];
      attempts += 1;
      if (!verifyStrict(key.publicKey, message, signature)) continue;
      found.add(key);
      break;
    }
  }
  return [...found];
}

function hintedFirst(keys: readonly TrustedKey[], hint: string | null): readonly TrustedKey[] {
  const hinted = keys.find((key) => key.keyId === hint);
  return hinted === undefined ? keys : [hinted, ...keys.filter((key) => key !== hinted)];
}

/** Hints are good enough to explain a refusal: the refusal itself stands already. */
function explainNoSigner(envelope: Envelope, store: TrustStore): Rejection {
  const hints = envelope.signatures.map(({ keyIdHint }) => keyIdHint).filter((hint) => hint !== null);
  const revoked = hints.find((hint) => store.revokedKeys.has(hint));
  if (revoked !== undefined)
    return reject('REVOKED', `the signature names key ${revoked}: revoked in the trust store`);
  const known = store.keys.filter((key) => hints.includes(key.keyId));
  if (known.length > 0) {
    return reject('BAD_SIGNATURE', `the signature names ${nameKeys(known)} and does not verify with it`);
  }
  const named = hints.length === 0 ? 'names no key' : `names key ${hints.map(quote).join(', ')}`;
  const detail = `the signature ${named}; none of the ${store.keys.length} keys of trust store version ${store.version} made it`;
  return reject('UNKNOWN_KEY', detail);
}

/** Remembers envelopes that were found authentic, so that a plugin that runs often is verified once. */
export type EnvelopeMemory = {
  authenticate(envelopeBytes: Uint8Array, store: TrustStore): Checked<AuthenticStatement>;
};

export function createEnvelopeMemory(maxEntries = 1024): EnvelopeMemory {
  const remembered = new Map<string, Checked<AuthenticStatement>>();
  return {
    authenticate(envelopeBytes, store) {
      const key = `${createHash('sha256').update(envelopeBytes).digest('base64')} ${store.digest}`;
      const known = remembered.get(key);
      const result = known ?? authenticate(envelopeBytes, store);
      // Refusals are not kept: strangers could push everything else out with them.
      if (!result.ok) return result;
      remembered.delete(key);
      remembered.set(key, result);
      const oldest = remembered.keys().next().value;
      if (remembered.size > maxEntries && oldest !== undefined) remembered.delete(oldest);
      return result;
    },
  };
}
