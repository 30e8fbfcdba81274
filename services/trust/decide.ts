// The one decision about trust: may this plugin run for this tenant with what the job asks for? Verifier, executor and
// command line all call it, with the same request and their own facts.
//
// The checks run from the cheap and general to the expensive and particular, and the first that fails gives the reason:
//   1. there is a trust store with keys, in date and not behind the one that admitted the job, and a policy
//   2. the request is well-formed and the file is not revoked
//   3. a listed, unrevoked key signed the envelope, and what it signed is a plugin statement (authenticate.ts)
//   4. enough owners' keys are in date and in scope
//   5. the statement is in date and speaks of this very file under this very name
//   6. GPU, network and every limit are within signature and policy
//
// Comparisons of time are written so that a clock that is not a number refuses.

import { type AuthenticStatement, authenticate, nameKeys } from './authenticate.ts';
import type { EnvelopeMemory } from './envelope-memory.ts';
import { fileNameRule, formatInstant, pluginFileName, sha256Hex, tenantName } from './formats.ts';
import { checkAsked, type EffectiveLimits, effectiveLimits, type RequestedLimits } from './limits.ts';
import { type Ceilings, ceilingsOf, type Policy } from './policy.ts';
import { quote, type Rejection, reject } from './reasons.ts';
import { matchesAny } from './scope.ts';
import { extensionOf, type Network, type PluginStatement } from './statement.ts';
import type { TrustedKey, TrustStore } from './trust-store.ts';

export type TrustRequest = {
  readonly tenant: string;
  /** The file name under which the job wants to run the plugin. */
  readonly pluginName: string;
  /** SHA-256 in hex of the plugin's bytes, computed by the caller. */
  readonly pluginSha256: string;
  /** The DSSE envelope's bytes; null where the job brought none. */
  readonly envelope: Uint8Array | null;
  readonly requested: {
    readonly limits: RequestedLimits;
    readonly requiresGpu: boolean;
    readonly network: Network;
    readonly maxAttempts?: number | null;
  };
  /** For the executor: the trust store under which the verifier admitted the job. */
  readonly admittedUnder?: { readonly version: number; readonly digest: string } | null;
};

export type TrustFacts = {
  readonly now: Date | number;
  /** null where no store could be loaded: then everything is refused. */
  readonly trustStore: TrustStore | null;
  /** Why there is no store: the reason that the job is told. */
  readonly trustStoreProblem?: Rejection | null;
  readonly policy: Policy | null;
};

export type Trusted = {
  readonly ok: true;
  readonly statement: PluginStatement;
  /** The keys that counted. */
  readonly keyIds: readonly string[];
  readonly owners: readonly string[];
  readonly trustStoreVersion: number;
  readonly trustStoreDigest: string;
  readonly policyDigest: string;
  readonly limits: EffectiveLimits;
  readonly requiresGpu: boolean;
  readonly network: Network;
  readonly maxAttempts: number;
};

export type TrustDecision = Trusted | Rejection;

/** Decides. Never throws for anything that a request can hold; does no I/O; `memory` only saves time. */
export function decideTrust(
  request: TrustRequest,
  facts: TrustFacts,
  memory?: EnvelopeMemory,
): TrustDecision {
  const { trustStore, policy } = facts;
  const nowMs = Number(facts.now);
  if (trustStore === null)
    return facts.trustStoreProblem ?? reject('NO_TRUST_STORE', 'no trust store is loaded');
  if (policy === null) return reject('NO_POLICY', 'no policy is loaded');
  const refusal = checkTrustStore(trustStore, request, nowMs) ?? checkRequest(request, trustStore);
  if (refusal !== null) return refusal;
  if (request.envelope === null) return reject('UNSIGNED', `${request.pluginName} came without an envelope`);

  const authentic = (memory ?? { authenticate }).authenticate(request.envelope, trustStore);
  if (!authentic.ok) return reject(authentic.reason, `${nameFile(request)}: ${authentic.detail}`);
  const signers = selectSigners(authentic.value, request.tenant, trustStore, nowMs);
  if (!signers.ok) return signers;
  const { statement } = authentic.value;
  return (
    checkSubject(statement, request, signers.keys) ??
    checkValidity(`the statement of ${statement.fileName}`, statement, nowMs) ??
    grant(request, statement, { trustStore, policy, keys: signers.keys })
  );
}

function checkTrustStore(store: TrustStore, request: TrustRequest, nowMs: number): Rejection | null {
  if (store.keys.length === 0)
    return reject('NO_TRUST_STORE', `trust store version ${store.version} lists no keys`);
  if (!(nowMs < store.expiresMs)) {
    const detail = `trust store version ${store.version} expired at ${formatInstant(store.expiresMs)}`;
    return reject('TRUST_STORE_EXPIRED', detail);
  }
  const admitted = request.admittedUnder ?? null;
  if (admitted === null || store.version > admitted.version) return null;
  if (store.version === admitted.version && store.digest === admitted.digest) return null;
  const here = `version ${store.version} (${store.digest})`;
  const there = `version ${admitted.version} (${quote(admitted.digest)})`;
  return reject(
    'TRUST_STORE_OUTDATED',
    `this service has trust store ${here}, the job was admitted under ${there}`,
  );
}

function checkRequest(request: TrustRequest, store: TrustStore): Rejection | null {
  const { tenant, pluginName, pluginSha256 } = request;
  if (!tenantName.safeParse(tenant).success) return reject('MALFORMED', `tenant ${quote(tenant)}`);
  if (!pluginFileName.safeParse(pluginName).success) {
    return reject('MALFORMED', `plugin name ${quote(pluginName)}: use ${fileNameRule}`);
  }
  if (!sha256Hex.safeParse(pluginSha256).success) return reject('MALFORMED', `digest ${quote(pluginSha256)}`);
  if (store.revokedDigests.has(pluginSha256)) {
    return reject(
      'REVOKED',
      `${nameFile(request)}: this file is revoked in trust store version ${store.version}`,
    );
  }
  return null;
}

type Signers = { readonly ok: true; readonly keys: readonly TrustedKey[] };

/** The signers that count for this plugin, tenant and time; refused where they are too few owners. */
function selectSigners(
  { statement, signers }: AuthenticStatement,
  tenant: string,
  store: TrustStore,
  nowMs: number,
): Signers | Rejection {
  const keys: TrustedKey[] = [];
  const faults: Rejection[] = [];
  for (const key of signers) {
    const fault = checkValidity(nameKeys([key]), key, nowMs) ?? checkScope(key, statement, tenant);
    if (fault === null) keys.push(key);
    else faults.push(fault);
  }
  const [firstFault] = faults;
  if (keys.length === 0 && firstFault !== undefined) return firstFault;
  const owners = new Set(keys.map((key) => key.owner));
  if (owners.size >= store.threshold) return { ok: true, keys };
  const detail = `${statement.fileName} is signed by ${owners.size} of ${store.threshold} owners (${nameKeys(keys)})`;
  return reject('THRESHOLD_NOT_MET', [detail, ...faults.map((fault) => fault.detail)].join('; '));
}

type Validity = { readonly notBeforeMs: number; readonly expiresMs: number };

function checkValidity(what: string, { notBeforeMs, expiresMs }: Validity, nowMs: number): Rejection | null {
  if (!(nowMs >= notBeforeMs))
    return reject('NOT_YET_VALID', `${what} is valid from ${formatInstant(notBeforeMs)}`);
  if (!(nowMs < expiresMs)) return reject('EXPIRED', `${what} expired at ${formatInstant(expiresMs)}`);
  return null;
}

function checkScope(key: TrustedKey, statement: PluginStatement, tenant: string): Rejection | null {
  const { scope } = key;
  const beyond: string[] = [];
  if (!matchesAny(scope.tenants, tenant)) beyond.push(`tenant ${tenant}`);
  if (!matchesAny(scope.plugins, statement.fileName)) beyond.push(`plugin ${statement.fileName}`);
  if (statement.requiresGpu && !scope.gpu) beyond.push('GPU plugins');
  if (statement.network !== 'none' && !scope.network) beyond.push('plugins with network');
  return beyond.length === 0
    ? null
    : reject('OUT_OF_SCOPE', `${nameKeys([key])} may not sign for ${beyond.join(', ')}`);
}

/** The signature must be about this file. A renamed extension would start another interpreter: that is said apart. */
function checkSubject(
  statement: PluginStatement,
  request: TrustRequest,
  keys: readonly TrustedKey[],
): Rejection | null {
  if (statement.sha256 !== request.pluginSha256) {
    const expected = `${nameKeys(keys)} signed ${statement.fileName} with SHA-256 ${statement.sha256}`;
    return reject(
      'DIGEST_MISMATCH',
      `${request.pluginName} has SHA-256 ${request.pluginSha256}; ${expected}`,
    );
  }
  if (extensionOf(statement.fileName) !== extensionOf(request.pluginName)) {
    const detail = `signed as ${statement.fileName} for ${statement.runtime}, submitted as ${request.pluginName}`;
    return reject('RUNTIME_MISMATCH', detail);
  }
  if (statement.fileName !== request.pluginName) {
    return reject('NAME_MISMATCH', `signed as ${statement.fileName}, submitted as ${request.pluginName}`);
  }
  return null;
}

type Basis = {
  readonly trustStore: TrustStore;
  readonly policy: Policy;
  readonly keys: readonly TrustedKey[];
};

function grant(request: TrustRequest, statement: PluginStatement, basis: Basis): TrustDecision {
  const { tenant, requested } = request;
  const { trustStore, policy, keys } = basis;
  const ceilings = ceilingsOf(policy, tenant);
  const refusal = checkPermissions(request, statement, ceilings);
  if (refusal !== null) return refusal;
  const limits = effectiveLimits(requested.limits, { signed: statement.limits, ceilings, tenant });
  if (!limits.ok) return reject(limits.reason, `${statement.fileName}: ${limits.detail}`);
  return {
    ok: true,
    statement,
    keyIds: keys.map((key) => key.keyId),
    owners: [...new Set(keys.map((key) => key.owner))],
    trustStoreVersion: trustStore.version,
    trustStoreDigest: trustStore.digest,
    policyDigest: policy.digest,
    limits: limits.value,
    requiresGpu: requested.requiresGpu,
    network: requested.network,
    maxAttempts: requested.maxAttempts ?? 1,
  };
}

function checkPermissions(
  { tenant, requested }: TrustRequest,
  statement: PluginStatement,
  ceilings: Ceilings,
): Rejection | null {
  const { fileName } = statement;
  const wantsNetwork = requested.network !== 'none';
  if (requested.requiresGpu && !statement.requiresGpu) {
    return reject('GPU_NOT_SIGNED', `the job asks for a GPU, ${fileName} is signed without`);
  }
  if (wantsNetwork && statement.network !== requested.network) {
    const detail = `the job asks for network ${quote(requested.network)}, ${fileName} is signed for ${statement.network}`;
    return reject('NETWORK_NOT_SIGNED', detail);
  }
  const policy = `the policy of tenant ${tenant}`;
  if (requested.requiresGpu && !ceilings.gpu) {
    return reject('LIMIT_EXCEEDED', `gpu: the job asks for a GPU, ${policy} allows none`);
  }
  if (wantsNetwork && !ceilings.network) {
    return reject('LIMIT_EXCEEDED', `network: the job asks for ${requested.network}, ${policy} allows none`);
  }
  return checkAsked('maxAttempts', requested.maxAttempts ?? null, ceilings.maxAttempts, policy);
}

function nameFile({ pluginName, pluginSha256 }: TrustRequest): string {
  return `${pluginName} (SHA-256 ${pluginSha256})`;
}
