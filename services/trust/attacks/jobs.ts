// For tests only: jobs whose envelope is in order, but not for this file, this moment or this tenant.

import type { TrustFacts, TrustRequest } from '../decide.ts';
import {
  ALICE,
  BOB,
  bend,
  envelopeFor,
  type JsonObject,
  MALLORY,
  NOW_MS,
  PLUGIN_SHA256,
  plugin,
  signPayload,
  statementJson,
  store,
  storedKey,
  testKey,
} from '../fixture.ts';
import { reject } from '../reasons.ts';
import type { StoredKey, TrustStore } from '../trust-store.ts';
import { ASK_ATTACKS } from './asks.ts';
import { type Attack, attack, bentEnvelope, OTHER_SHA256 } from './attack.ts';

const SUBJECTS: readonly Attack[] = [
  attack('DIGEST_MISMATCH', 'the file swapped after signing', {
    request: { pluginSha256: OTHER_SHA256 },
    says: ['hello.py', ALICE.keyId, 'Alice', PLUGIN_SHA256, OTHER_SHA256],
  }),
  attack('DIGEST_MISMATCH', 'the statement of plugin A on plugin B', {
    request: { envelope: envelopeFor(plugin({ fileName: 'other.py', name: 'other', sha256: OTHER_SHA256 })) },
    says: ['other.py', OTHER_SHA256],
  }),
  attack('RUNTIME_MISMATCH', 'the extension renamed', {
    request: { pluginName: 'hello.sh' },
    says: ['python'],
  }),
  attack('RUNTIME_MISMATCH', 'the extension dropped', { request: { pluginName: 'hello' } }),
  attack('NAME_MISMATCH', 'the file renamed', {
    request: { pluginName: 'goodbye.py' },
    says: ['goodbye.py'],
  }),
  attack('RUNTIME_MISMATCH', 'Python signed as Bash', {
    request: { envelope: signPayload(bend(statementJson(), 'predicate.runtime', 'bash')) },
  }),
  attack('RUNTIME_MISMATCH', 'a script signed as native', {
    request: {
      envelope: signPayload(
        bend(bend(statementJson(), 'predicate.runtime', 'native'), 'predicate.architecture', 'x86_64'),
      ),
    },
  }),
  attack('MALFORMED', 'a path for a name', { request: { pluginName: '../hello.py' } }),
  attack('MALFORMED', 'an option for a name', { request: { pluginName: '-c' } }),
  attack('MALFORMED', 'terminal codes in the name', {
    request: { pluginName: '\u001b[2J' },
    says: ['\\u001b'],
  }),
  attack('MALFORMED', 'a digest in capitals', { request: { pluginSha256: PLUGIN_SHA256.toUpperCase() } }),
  attack('MALFORMED', 'a tenant of two subject tokens', { request: { tenant: 'acme.>' } }),
];

const ms = (text: string): number => Date.parse(text);
const expired = { expires: '2026-06-01T12:00:00Z' };
const future = { notBefore: '2026-06-01T12:00:00.001Z' };
const bothSign = envelopeFor(plugin(), [ALICE, BOB]);

const TIMES: readonly Attack[] = [
  attack('EXPIRED', 'an expired statement', {
    facts: { now: new Date('2027-06-01T00:00:00Z'), trustStore: lasting() },
  }),
  attack('EXPIRED', 'a statement at the moment of its end', {
    request: { envelope: envelopeFor(plugin({ expiresMs: NOW_MS })) },
    says: ['the statement of hello.py', '2026-06-01T12:00:00.000Z'],
  }),
  attack('NOT_YET_VALID', 'a statement a millisecond early', {
    request: { envelope: envelopeFor(plugin({ notBeforeMs: NOW_MS + 1 })) },
    says: ['2026-06-01T12:00:00.001Z'],
  }),
  attack('EXPIRED', 'an expired key', {
    facts: { trustStore: store({ keys: [{ ...storedKey(ALICE, 'Alice'), ...expired }] }) },
    says: [ALICE.keyId, 'Alice'],
  }),
  attack('NOT_YET_VALID', 'a key of the future', {
    facts: { trustStore: store({ keys: [{ ...storedKey(ALICE, 'Alice'), ...future }] }) },
  }),
  attack('TRUST_STORE_EXPIRED', 'an expired trust store', { facts: { now: ms('2026-12-31T00:00:00Z') } }),
  attack('TRUST_STORE_EXPIRED', 'a clock that is no number', { facts: { now: Number.NaN } }),
];

function lasting(): TrustFacts['trustStore'] {
  const keys = [{ ...storedKey(ALICE, 'Alice'), expires: '2030-01-01T00:00:00Z' }];
  return store({ expires: '2030-01-01T00:00:00Z', keys });
}

const REVOCATIONS: readonly Attack[] = [
  attack('REVOKED', 'a revoked key', {
    facts: { trustStore: store({ revokedKeys: [ALICE.keyId] }) },
    says: [ALICE.keyId, 'Alice', 'hello.py'],
  }),
  attack('REVOKED', 'a revoked key with a broken statement', {
    request: { envelope: signPayload('{}') },
    facts: { trustStore: store({ revokedKeys: [ALICE.keyId] }) },
  }),
  attack('REVOKED', 'a revoked key that is no longer listed', {
    facts: { trustStore: store({ revokedKeys: [ALICE.keyId], keys: [storedKey(BOB, 'Bob')] }) },
  }),
  attack('REVOKED', 'a revoked file', {
    facts: { trustStore: store({ revokedDigests: [PLUGIN_SHA256] }) },
    says: ['hello.py', PLUGIN_SHA256],
  }),
  attack('THRESHOLD_NOT_MET', 'one of two signers revoked', {
    request: { envelope: bothSign },
    facts: { trustStore: store({ threshold: 2, revokedKeys: [BOB.keyId] }) },
  }),
];

function scoped(scope: Parameters<typeof storedKey>[2]): Partial<TrustFacts> {
  return { trustStore: store({ keys: [storedKey(ALICE, 'Alice', scope)] }) };
}

const SCOPES: readonly Attack[] = [
  attack('OUT_OF_SCOPE', 'another plugin', {
    facts: scoped({ plugins: ['other.py'] }),
    says: ['plugin hello.py'],
  }),
  attack('OUT_OF_SCOPE', 'a pattern that ends early', {
    facts: scoped({ plugins: ['hell*.rb', 'hello', 'hello.p'] }),
  }),
  attack('OUT_OF_SCOPE', 'a pattern that begins late', { facts: scoped({ plugins: ['ello.py', '?ello'] }) }),
  attack('OUT_OF_SCOPE', 'a dot is no wild card', { facts: scoped({ plugins: ['hello?py.', 'h.llo.py'] }) }),
  attack('OUT_OF_SCOPE', 'a pattern made to be slow', {
    facts: scoped({ plugins: [`${'*h'.repeat(60)}x`] }),
  }),
  attack('OUT_OF_SCOPE', 'another tenant', {
    facts: scoped({ tenants: ['acme2', 'acm'] }),
    says: ['tenant acme'],
  }),
  attack('OUT_OF_SCOPE', 'a GPU plugin by a key without', {
    request: { envelope: envelopeFor(plugin({ requiresGpu: true })) },
    says: ['GPU'],
  }),
  attack('OUT_OF_SCOPE', 'a network plugin by a key without', {
    request: { envelope: envelopeFor(plugin({ network: 'host' })) },
    says: ['network'],
  }),
];

const two = { trustStore: store({ threshold: 2 }) };

const THRESHOLDS: readonly Attack[] = [
  attack('THRESHOLD_NOT_MET', 'one of two signers', { facts: two, says: ['1 of 2', ALICE.keyId] }),
  attack('THRESHOLD_NOT_MET', 'one signer twice', {
    request: { envelope: envelopeFor(plugin(), [ALICE, ALICE]) },
    facts: two,
  }),
  attack('THRESHOLD_NOT_MET', 'one signer under two key ids', {
    request: { envelope: twiceUnderOtherName() },
    facts: two,
  }),
  attack('THRESHOLD_NOT_MET', 'one owner with two keys', {
    request: { envelope: bothSign },
    facts: {
      trustStore: store({ threshold: 2, keys: [storedKey(ALICE, 'Alice'), storedKey(BOB, 'Alice')] }),
    },
  }),
  attack('THRESHOLD_NOT_MET', 'a stranger as the second', {
    request: { envelope: envelopeFor(plugin(), [ALICE, MALLORY]) },
    facts: two,
  }),
  attack('THRESHOLD_NOT_MET', 'the second key expired', {
    request: { envelope: bothSign },
    facts: {
      trustStore: store({
        threshold: 2,
        keys: [storedKey(ALICE, 'Alice'), { ...storedKey(BOB, 'Bob'), ...expired }],
      }),
    },
    says: ['expired', BOB.keyId],
  }),
  attack('THRESHOLD_NOT_MET', 'the second key out of scope', {
    request: { envelope: bothSign },
    facts: {
      trustStore: store({
        threshold: 2,
        keys: [storedKey(ALICE, 'Alice'), storedKey(BOB, 'Bob', { tenants: ['x'] })],
      }),
    },
  }),
];

function twiceUnderOtherName(): Uint8Array {
  const json: JsonObject = JSON.parse(Buffer.from(envelopeFor(plugin(), [ALICE, ALICE])).toString());
  return Buffer.from(JSON.stringify(bend(json, 'signatures.1.keyid', BOB.keyId)));
}

const admitted = (version: number, digest: string): Partial<TrustRequest> => ({
  admittedUnder: { version, digest },
});

const CROWD = Array.from({ length: 129 }, (_, index) => storedKey(testKey(`crowd ${index}`), 'Crowd'));

/** So many keys that not all are tried without a hint (128 are), with these at their places. */
export function crowdedStore(
  size: number,
  places: { readonly [place: number]: StoredKey },
  threshold = 1,
): TrustStore {
  return store({ threshold, keys: CROWD.slice(0, size).map((key, place) => places[place] ?? key) });
}

const unhinted = bentEnvelope('signatures.0.keyid', undefined);

const FACTS: readonly Attack[] = [
  attack('UNKNOWN_KEY', 'more keys than are tried, and no hint', {
    request: { envelope: unhinted },
    facts: { trustStore: crowdedStore(129, { 128: storedKey(ALICE, 'Alice') }) },
    says: ['names no key', 'the first 128 of the 129 keys'],
  }),
  attack('UNKNOWN_KEY', 'as many keys as are tried, and none fits', {
    facts: { trustStore: crowdedStore(128, {}) },
    says: [ALICE.keyId, 'none of the 128 keys'],
  }),
  attack('NO_TRUST_STORE', 'no trust store', { facts: { trustStore: null } }),
  attack('TRUST_STORE_OUTDATED', 'a trust store that was rolled back', {
    facts: { trustStore: null, trustStoreProblem: reject('TRUST_STORE_OUTDATED', 'version 7 was seen') },
    says: ['version 7'],
  }),
  attack('NO_TRUST_STORE', 'a trust store without keys', { facts: { trustStore: store({ keys: [] }) } }),
  attack('NO_POLICY', 'no policy', { facts: { policy: null } }),
  attack('TRUST_STORE_OUTDATED', 'an executor with an older store', {
    request: admitted(8, store().digest),
    says: ['7', '8'],
  }),
  attack('TRUST_STORE_OUTDATED', 'an executor with another store of that version', {
    request: admitted(7, OTHER_SHA256),
  }),
];

export const JOB_ATTACKS: readonly Attack[] = [
  ...SUBJECTS,
  ...TIMES,
  ...REVOCATIONS,
  ...SCOPES,
  ...THRESHOLDS,
  ...ASK_ATTACKS,
  ...FACTS,
];
