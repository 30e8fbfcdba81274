// What services and the command line use of the trust component. It is pure: it reads no file, no clock and no
// environment, and talks to nobody.

export { authenticate } from './authenticate.ts';
export {
  decideTrust,
  type TrustDecision,
  type Trusted,
  type TrustFacts,
  type TrustRequest,
} from './decide.ts';
export {
  cosignEnvelope,
  type Envelope,
  MAX_ENVELOPE_BYTES,
  MAX_SIGNATURES,
  parseEnvelope,
  preAuthenticationEncoding,
  signEnvelope,
} from './dsse.ts';
export { createEnvelopeMemory, type EnvelopeMemory } from './envelope-memory.ts';
export { formatInstant } from './formats.ts';
export {
  checkPublicKey,
  generateKey,
  keyIdOf,
  type PublicKey,
  privateKeyFromPem,
  privateKeyToPem,
  publicKeyFromText,
  publicKeyToPem,
  type SigningKey,
} from './keys.ts';
export { DEFAULT_LIMITS, type EffectiveLimits, type RequestedLimits } from './limits.ts';
export {
  type Ceilings,
  ceilingsOf,
  concurrencyOf,
  encodePolicy,
  type Policy,
  type PolicyContent,
  parsePolicy,
} from './policy.ts';
export {
  adviceFor,
  type Checked,
  REJECT_REASONS,
  type Rejection,
  type RejectReason,
  reject,
} from './reasons.ts';
export { findRevocation, type TrustedRun } from './revocation.ts';
export { signMessage, verifyStrict } from './signature.ts';
export {
  checkFollows,
  encodeTrustStoreMark,
  markOf,
  openTrustStore,
  parseTrustStoreMark,
  type Reload,
  readTrustStoreFile,
  reloadTrustStore,
  rotateRoot,
  type SignedTrustStore,
  signTrustStore,
  type TrustStoreFile,
  type TrustStoreMark,
} from './signed-trust-store.ts';
export {
  ARCHITECTURES,
  type Architecture,
  extensionOf,
  type Network,
  type PluginStatement,
  PREDICATE_TYPE,
  parseStatement,
  RUNTIMES,
  type Runtime,
  runtimeOfFileName,
  type SignedLimits,
  STATEMENT_PAYLOAD_TYPE,
  statementFor,
} from './statement.ts';
export { type Json, type JsonBounds, parseStrictJson } from './strict-json.ts';
export {
  emptyTrustStore,
  encodeTrustStore,
  type KeyScope,
  parseTrustStore,
  readTrustStoreContent,
  type StoredKey,
  type TrustedKey,
  type TrustStore,
  type TrustStoreContent,
  withExpiry,
  withKey,
  withoutKey,
  withReplacedKey,
  withRevokedDigest,
  withRevokedKey,
} from './trust-store.ts';
