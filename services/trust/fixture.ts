// For tests only: a signed plugin, a trust store that trusts its signers, a policy and a job, all valid. A test changes
// one thing and sees what happens.

import { createHash } from 'node:crypto';
import type { TrustFacts, TrustRequest } from './decide.ts';
import { signEnvelope } from './dsse.ts';
import { formatInstant } from './formats.ts';
import { publicKeyToPem, type SigningKey, signingKeyFromSeed } from './keys.ts';
import { encodePolicy, type Policy, type PolicyContent, parsePolicy } from './policy.ts';
import type { Checked } from './reasons.ts';
import {
  type PluginStatement,
  runtimeOfFileName,
  STATEMENT_PAYLOAD_TYPE,
  statementFor,
} from './statement.ts';
import {
  emptyTrustStore,
  encodeTrustStore,
  parseTrustStore,
  type StoredKey,
  type TrustStore,
  type TrustStoreContent,
  withKey,
} from './trust-store.ts';

export const NOW_MS = Date.parse('2026-06-01T12:00:00Z');
export const PLUGIN_SHA256 = createHash('sha256').update('print("hello")\n').digest('hex');

export const ALICE = testKey('alice');
export const BOB = testKey('bob');
export const MALLORY = testKey('mallory');

/** The same key every time, so that tests are repeatable. */
export function testKey(name: string): SigningKey {
  return signingKeyFromSeed(createHash('sha256').update(`test key of ${name}`).digest());
}

/** The value, or a failure that says why there is none. */
export function expectValue<T>(checked: Checked<T>): T {
  if (!checked.ok) throw new Error(`${checked.reason}: ${checked.detail}`);
  return checked.value;
}

export function plugin(changes: Partial<PluginStatement> = {}): PluginStatement {
  return {
    fileName: 'hello.py',
    sha256: PLUGIN_SHA256,
    name: 'hello',
    version: '1.0.0',
    runtime: 'python',
    architecture: null,
    requiresGpu: false,
    network: 'none',
    limits: { memoryBytes: 512 * 1024 * 1024, cpuMillis: 2000, wallMs: 60_000, processes: 256 },
    notBeforeMs: Date.parse('2026-01-01T00:00:00Z'),
    expiresMs: Date.parse('2027-01-01T00:00:00Z'),
    ...changes,
  };
}

export function envelopeFor(statement: PluginStatement, keys: readonly SigningKey[] = [ALICE]): Uint8Array {
  return signEnvelope(STATEMENT_PAYLOAD_TYPE, expectValue(statementFor(statement)), keys);
}

export type JsonObject = { [key: string]: unknown };

/** The valid statement as plain JSON. */
export function statementJson(changes: Partial<PluginStatement> = {}): JsonObject {
  return JSON.parse(Buffer.from(expectValue(statementFor(plugin(changes)))).toString());
}

/** Changes one place of a JSON document: `bend(json, 'predicate.limits.wallMs', 0)`. `undefined` removes the field. */
export function bend(json: JsonObject, path: string, value: unknown): JsonObject {
  const steps = path.split('.');
  const last = steps.pop() ?? '';
  const place = steps.reduce((at, step) => at[step] as JsonObject, json);
  if (value === undefined) delete place[last];
  else place[last] = value;
  return json;
}

/** Signs any bytes or JSON as if it were a statement: what a listed signer with bad intentions can do. */
export function signPayload(payload: Uint8Array | string | JsonObject, keys = [ALICE]): Uint8Array {
  const isBytes = typeof payload === 'string' || payload instanceof Uint8Array;
  const bytes = Buffer.from(isBytes ? payload : JSON.stringify(payload));
  return signEnvelope(STATEMENT_PAYLOAD_TYPE, bytes, keys);
}

export function storedKey(
  key: SigningKey,
  owner: string,
  scope: Partial<StoredKey['scope']> = {},
): StoredKey {
  return {
    publicKey: publicKeyToPem(key.publicKey),
    owner,
    scope: { plugins: ['*'], tenants: ['*'], gpu: false, network: false, ...scope },
    notBefore: '2026-01-01T00:00:00Z',
    expires: '2027-01-01T00:00:00Z',
  };
}

export function storeContent(changes: Partial<TrustStoreContent> = {}): TrustStoreContent {
  return {
    version: 7,
    expires: '2026-12-31T00:00:00Z',
    threshold: 1,
    keys: [storedKey(ALICE, 'Alice'), storedKey(BOB, 'Bob', { gpu: true, network: true })],
    revokedKeys: [],
    revokedDigests: [],
    ...changes,
  };
}

export function store(changes: Partial<TrustStoreContent> = {}): TrustStore {
  return expectValue(parseTrustStore(expectValue(encodeTrustStore(storeContent(changes)))));
}

export function policyContent(): PolicyContent {
  return {
    default: {
      memoryBytes: 1024 * 1024 * 1024,
      cpuMillis: 4000,
      wallMs: 300_000,
      cpuTimeMs: 600_000,
      processes: 512,
      outputBytes: 16 * 1024 * 1024,
      tmpBytes: 256 * 1024 * 1024,
      network: true,
      gpu: true,
      concurrency: 8,
      maxAttempts: 3,
    },
    tenants: { small: { memoryBytes: 64 * 1024 * 1024, gpu: false, network: false } },
  };
}

export function policy(content: PolicyContent = policyContent()): Policy {
  return expectValue(parsePolicy(expectValue(encodePolicy(content))));
}

export function request(changes: Partial<TrustRequest> = {}): TrustRequest {
  return {
    tenant: 'acme',
    pluginName: 'hello.py',
    pluginSha256: PLUGIN_SHA256,
    envelope: envelopeFor(plugin()),
    requested: { limits: {}, requiresGpu: false, network: 'none', maxAttempts: null },
    ...changes,
  };
}

export function facts(changes: Partial<TrustFacts> = {}): TrustFacts {
  return { now: NOW_MS, trustStore: store(), policy: policy(), ...changes };
}

const dayMs = 86_400_000;

/** For whole systems, which go by the real clock: a store that trusts this key for everything, today and tomorrow. */
export function trustStoreOf(key: SigningKey): TrustStoreContent {
  return withKey(emptyTrustStore(Date.now() + dayMs), {
    publicKey: publicKeyToPem(key.publicKey),
    owner: 'tester',
    scope: { plugins: ['*'], tenants: ['*'], gpu: true, network: true },
    notBefore: formatInstant(Date.now() - dayMs),
    expires: formatInstant(Date.now() + dayMs),
  });
}

/** A statement that is valid today, about a file for this machine; the runtime is that of its name. */
export function statementOf(
  fileName: string,
  sha256: string,
  most: Pick<PluginStatement, 'network' | 'limits'>,
): PluginStatement {
  const runtime = runtimeOfFileName(fileName);
  return {
    fileName,
    sha256,
    name: fileName.replace(/\..*$/, ''),
    version: '1.0.0',
    runtime,
    architecture: runtime !== 'native' ? null : process.arch === 'arm64' ? 'aarch64' : 'x86_64',
    requiresGpu: false,
    ...most,
    notBeforeMs: Date.now() - dayMs,
    expiresMs: Date.now() + dayMs,
  };
}
