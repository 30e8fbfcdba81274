// For tests only: jobs that must be allowed, up to the very edge of each rule, and what they get.

import type { Trusted, TrustFacts, TrustRequest } from '../decide.ts';
import {
  ALICE,
  BOB,
  bend,
  envelopeFor,
  facts,
  type JsonObject,
  MALLORY,
  NOW_MS,
  plugin,
  policy,
  policyContent,
  request,
  signPayload,
  statementJson,
  store,
  storedKey,
} from '../fixture.ts';
import type { EffectiveLimits } from '../limits.ts';
import { crowdedStore } from './jobs.ts';

export type Permitted = {
  readonly name: string;
  readonly request: TrustRequest;
  readonly facts: TrustFacts;
  readonly expected: Partial<Omit<Trusted, 'limits'>>;
  readonly limits: Partial<EffectiveLimits>;
};

type Job = {
  readonly request?: Partial<TrustRequest>;
  readonly facts?: Partial<TrustFacts>;
  readonly expected?: Permitted['expected'];
  readonly limits?: Partial<EffectiveLimits>;
};

function permitted(name: string, job: Job): Permitted {
  const { expected = {}, limits = {} } = job;
  return { name, request: request(job.request), facts: facts(job.facts), expected, limits };
}

function asking(changes: Partial<TrustRequest['requested']>): TrustRequest['requested'] {
  return { limits: {}, requiresGpu: false, network: 'none', ...changes };
}

/** The valid envelope with another key id, which is a hint and no more. */
function hinting(keyid: string | undefined): Uint8Array {
  const json: JsonObject = JSON.parse(Buffer.from(envelopeFor(plugin())).toString());
  return Buffer.from(JSON.stringify(bend(json, 'signatures.0.keyid', keyid)));
}

function secondUnhinted(): Uint8Array {
  const json: JsonObject = JSON.parse(Buffer.from(envelopeFor(plugin(), [ALICE, BOB])).toString());
  return Buffer.from(JSON.stringify(bend(json, 'signatures.1.keyid', undefined)));
}

function urlSafe(): Uint8Array {
  const json = JSON.parse(Buffer.from(envelopeFor(plugin())).toString());
  const [signature] = json.signatures;
  const url = (base64: string): string => Buffer.from(base64, 'base64').toString('base64url');
  return Buffer.from(
    JSON.stringify({ ...json, payload: url(json.payload), signatures: [{ sig: url(signature.sig) }] }),
  );
}

const MIB = 1024 * 1024;
const aliceOnly = { keyIds: [ALICE.keyId], owners: ['Alice'] };

const SIGNATURES: readonly Permitted[] = [
  permitted('a signed plugin', {
    expected: { ...aliceOnly, trustStoreVersion: 7, maxAttempts: 1, requiresGpu: false },
  }),
  permitted('no key id', { request: { envelope: hinting(undefined) }, expected: aliceOnly }),
  permitted('the key id of another tool', {
    request: { envelope: hinting('SHA256:abc') },
    expected: aliceOnly,
  }),
  permitted('the key id of another listed key', {
    request: { envelope: hinting(BOB.keyId) },
    expected: aliceOnly,
  }),
  permitted('Base64 for URLs, without padding', { request: { envelope: urlSafe() }, expected: aliceOnly }),
  permitted('a stranger beside a listed signer', {
    request: { envelope: envelopeFor(plugin(), [MALLORY, ALICE]) },
    expected: aliceOnly,
  }),
  permitted('a revoked signer beside a listed one', {
    request: { envelope: envelopeFor(plugin(), [ALICE, BOB]) },
    facts: { trustStore: store({ revokedKeys: [BOB.keyId] }) },
    expected: aliceOnly,
  }),
  permitted('a hint to the last of very many keys', {
    facts: { trustStore: crowdedStore(129, { 128: storedKey(ALICE, 'Alice') }) },
    expected: aliceOnly,
  }),
  permitted('no hint, and the last key that is tried', {
    request: { envelope: hinting(undefined) },
    facts: { trustStore: crowdedStore(129, { 127: storedKey(ALICE, 'Alice') }) },
    expected: aliceOnly,
  }),
  permitted('many signatures of strangers before a listed one', {
    request: { envelope: envelopeFor(plugin(), [...new Array(7).fill(MALLORY), ALICE]) },
    facts: { trustStore: crowdedStore(129, { 128: storedKey(ALICE, 'Alice') }) },
    expected: aliceOnly,
  }),
  permitted('two signers among many keys, with no try wasted', {
    request: { envelope: secondUnhinted() },
    facts: {
      trustStore: crowdedStore(128, { 0: storedKey(ALICE, 'Alice'), 127: storedKey(BOB, 'Bob') }, 2),
    },
    expected: { owners: ['Alice', 'Bob'] },
  }),
  permitted('a statement of 16 KiB', {
    request: { envelope: signPayload(JSON.stringify(statementJson()).padEnd(16 * 1024)) },
  }),
  permitted('eight signatures', { request: { envelope: envelopeFor(plugin(), new Array(8).fill(ALICE)) } }),
  permitted('two owners where two are needed', {
    request: { envelope: envelopeFor(plugin(), [BOB, ALICE]) },
    facts: { trustStore: store({ threshold: 2 }) },
    expected: { keyIds: [BOB.keyId, ALICE.keyId], owners: ['Bob', 'Alice'] },
  }),
  permitted('two keys of one owner where one is needed', {
    request: { envelope: envelopeFor(plugin(), [ALICE, BOB]) },
    facts: { trustStore: store({ keys: [storedKey(ALICE, 'Alice'), storedKey(BOB, 'Alice')] }) },
    expected: { keyIds: [ALICE.keyId, BOB.keyId], owners: ['Alice'] },
  }),
  permitted('a statement of another tool: other order, spaces, plain seconds', {
    request: {
      envelope: signPayload(
        JSON.stringify(
          Object.fromEntries(
            Object.entries(bend(statementJson(), 'predicate.expires', '2027-01-01T00:00:00Z')).reverse(),
          ),
          null,
          '\t',
        ),
      ),
    },
  }),
  permitted('a version written with escapes', {
    request: { envelope: signPayload(JSON.stringify(statementJson()).replace('1.0.0', '\\u0031.0')) },
  }),
];

const NAMES: readonly Permitted[] = [
  ...['*', '*.py', 'hello.py', 'h*o.*', '?????.py', '**', 'hello.py*', '*h*e*l*l*o*'].map((pattern) =>
    permitted(`the scope ${pattern}`, {
      facts: { trustStore: store({ keys: [storedKey(ALICE, 'Alice', { plugins: ['none', pattern] })] }) },
    }),
  ),
  permitted('the scope of the tenant', {
    facts: { trustStore: store({ keys: [storedKey(ALICE, 'Alice', { tenants: ['b*', 'ac*'] })] }) },
  }),
  ...(['hello.mjs', 'hello.cjs', 'hello.js', 'hello.ts', 'hello-1.2.js', 'hello_x.ts'] as const).map(
    (fileName) =>
      permitted(`a Node plugin ${fileName}`, {
        request: { pluginName: fileName, envelope: envelopeFor(plugin({ fileName, runtime: 'node' })) },
      }),
  ),
  ...['hello', 'hello.bin', 'hello-x86_64'].map((fileName) =>
    permitted(`a native plugin ${fileName}`, {
      request: {
        pluginName: fileName,
        envelope: envelopeFor(plugin({ fileName, runtime: 'native', architecture: 'x86_64' })),
      },
      expected: { statement: plugin({ fileName, runtime: 'native', architecture: 'x86_64' }) },
    }),
  ),
];

const TIMES: readonly Permitted[] = [
  permitted('the first millisecond of a statement', {
    request: { envelope: envelopeFor(plugin({ notBeforeMs: NOW_MS })) },
  }),
  permitted('the last millisecond of a statement', {
    request: { envelope: envelopeFor(plugin({ expiresMs: NOW_MS + 1 })) },
  }),
  permitted('the first millisecond of a key', {
    facts: {
      trustStore: store({ keys: [{ ...storedKey(ALICE, 'Alice'), notBefore: '2026-06-01T12:00:00Z' }] }),
    },
  }),
  permitted('the last millisecond of a key', {
    facts: {
      trustStore: store({ keys: [{ ...storedKey(ALICE, 'Alice'), expires: '2026-06-01T12:00:00.001Z' }] }),
    },
  }),
  permitted('the last millisecond of a trust store', {
    facts: { now: Date.parse('2026-12-30T23:59:59.999Z') },
  }),
  permitted('an executor with the store of the verifier', {
    request: { admittedUnder: { version: 7, digest: store().digest } },
  }),
  permitted('an executor with a newer store', { request: { admittedUnder: { version: 6, digest: 'any' } } }),
];

const signedMost = { memoryBytes: 512 * MIB, cpuMillis: 2000, wallMs: 60_000, processes: 256 };
const policyMost = { cpuTimeMs: 600_000, outputBytes: 16 * MIB, tmpBytes: 256 * MIB };
const byBob = (changes: Parameters<typeof plugin>[0]): Uint8Array => envelopeFor(plugin(changes), [BOB]);
const uncapped = policy({ default: { ...policyContent().default, cpuTimeMs: null } });

const LIMITS: readonly Permitted[] = [
  permitted('nothing asked: the usual limits', {
    limits: {
      memoryBytes: 256 * MIB,
      cpuMillis: 1000,
      wallMs: 10_000,
      cpuTimeMs: 600_000,
      processes: 128,
      outputBytes: MIB,
      tmpBytes: 64 * MIB,
    },
  }),
  permitted('all that is signed and allowed', {
    request: { requested: asking({ limits: { ...signedMost, ...policyMost }, maxAttempts: 3 }) },
    expected: { maxAttempts: 3 },
    limits: { ...signedMost, ...policyMost },
  }),
  permitted('the least of everything', {
    request: {
      requested: asking({ limits: { memoryBytes: 1, cpuMillis: 1, wallMs: 1, cpuTimeMs: 1, tmpBytes: 1 } }),
    },
    limits: { memoryBytes: 1, cpuMillis: 1, wallMs: 1, cpuTimeMs: 1, tmpBytes: 1 },
  }),
  permitted('nothing asked, less signed than usual', {
    request: {
      envelope: envelopeFor(plugin({ limits: { memoryBytes: 5, cpuMillis: 6, wallMs: 7, processes: 8 } })),
    },
    limits: { memoryBytes: 5, cpuMillis: 6, wallMs: 7, processes: 8 },
  }),
  permitted('nothing asked, less allowed than usual', {
    request: { tenant: 'small' },
    limits: { memoryBytes: 64 * MIB },
  }),
  permitted('no bound on processor time', { facts: { policy: uncapped }, limits: { cpuTimeMs: null } }),
  permitted('processor time asked where nothing bounds it', {
    request: { requested: asking({ limits: { cpuTimeMs: 10 ** 9 } }) },
    facts: { policy: uncapped },
    limits: { cpuTimeMs: 10 ** 9 },
  }),
  permitted('a GPU', {
    request: { envelope: byBob({ requiresGpu: true }), requested: asking({ requiresGpu: true }) },
    expected: { requiresGpu: true, network: 'none' },
  }),
  permitted('the network', {
    request: { envelope: byBob({ network: 'host' }), requested: asking({ network: 'host' }) },
    expected: { network: 'host', requiresGpu: false },
  }),
  permitted('a plugin that may have both and gets neither', {
    request: { envelope: byBob({ requiresGpu: true, network: 'host' }), tenant: 'small' },
    expected: { network: 'none', requiresGpu: false },
  }),
];

export const PERMITTED: readonly Permitted[] = [...SIGNATURES, ...NAMES, ...TIMES, ...LIMITS];
