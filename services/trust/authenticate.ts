// From an envelope of unknown origin to a statement and the listed keys that signed it. What is found here depends on
// nothing but the envelope's bytes and the trust store, so it may be remembered; time, tenant and limits come later.

import { type Envelope, type EnvelopeSignature, parseEnvelope, preAuthenticationEncoding } from './dsse.ts';
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

/** The listed keys that signed. Each signature speaks for one key, and each key is counted once. */
function findSigners(envelope: Envelope, keys: readonly TrustedKey[]): TrustedKey[] {
  const message = preAuthenticationEncoding(envelope.payloadType, envelope.payload);
  const found = new Set<TrustedKey>();
  const explained = new Set<EnvelopeSignature>();
  let attempts = 0;
  for (const [signed, key] of pairsToTry(envelope.signatures, keys)) {
    if (found.has(key) || explained.has(signed)) continue;
    if (attempts >= MAX_ATTEMPTS) break;
    attempts += 1;
    if (!verifyStrict(key.publicKey, message, signed.signature)) continue;
    found.add(key);
    explained.add(signed);
  }
  return [...found];
}

/** Every signature with every key. Hints decide the order and nothing else: keys that are named come first. */
function* pairsToTry(
  signatures: readonly EnvelopeSignature[],
  keys: readonly TrustedKey[],
): Generator<[EnvelopeSignature, TrustedKey]> {
  for (const hinted of [true, false]) {
    for (const signed of signatures) {
      for (const key of keys) {
        if ((key.keyId === signed.keyIdHint) === hinted) yield [signed, key];
      }
    }
  }
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
  const inStore = `${store.keys.length} keys of trust store version ${store.version}`;
  const tried =
    store.keys.length > MAX_ATTEMPTS ? `the first ${MAX_ATTEMPTS} of the ${inStore}` : `the ${inStore}`;
  const detail = `the signature ${named}; none of ${tried} made it`;
  return reject('UNKNOWN_KEY', detail);
}
