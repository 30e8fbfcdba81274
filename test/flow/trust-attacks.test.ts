/**
 * Attacks on signatures, through the whole system: each is refused for exactly its reason, and nothing of the plugin
 * ran. The decision itself has a longer table in services/trust/attacks.
 */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { defaultPolicy } from '../../services/cli/default-policy.ts';
import type { SubmitRequest } from '../../services/client/index.ts';
import { connect } from '../../services/client/index.ts';
import { expectValue } from '../../services/trust/fixture.ts';
import type {
  PluginStatement,
  SigningKey,
  StoredKey,
  TrustStoreContent,
} from '../../services/trust/index.ts';
import {
  cosignEnvelope,
  encodePolicy,
  formatInstant,
  generateKey,
  parseEnvelope,
  publicKeyToPem,
  withRevokedDigest,
  withRevokedKey,
} from '../../services/trust/index.ts';
import type { TestSystem } from '../with-system.ts';
import { finished, sha256, startTestSystem, text } from '../with-system.ts';

const mebibyte = 1024 * 1024;
const dayMs = 86_400_000;
const canary = Buffer.from('#!/bin/bash\necho alive > /job/out/canary\necho alive\n');
const other = Buffer.from('#!/bin/bash\necho another plugin\n');
const secondOwner = generateKey();
const narrow = generateKey();
const early = generateKey();
const late = generateKey();

let system: TestSystem;
let base: TrustStoreContent;
before(async () => {
  system = await startTestSystem({}, { tenants: ['acme', 'small'] });
  base = {
    ...system.trust,
    keys: [
      ...system.trust.keys,
      listed(secondOwner, 'second owner'),
      listed(narrow, 'narrow', { plugins: ['build-*'], tenants: ['other-*'], gpu: false, network: false }),
      { ...listed(early, 'early'), notBefore: formatInstant(Date.now() + dayMs / 2) },
      { ...listed(late, 'late'), expires: formatInstant(Date.now() - 1000) },
    ],
  };
  await publish(base);
  const small = { memoryBytes: 64 * mebibyte, cpuMillis: 500, wallMs: 5000, processes: 16, gpu: false };
  const more = { outputBytes: mebibyte, tmpBytes: mebibyte, cpuTimeMs: 2000, maxAttempts: 1 };
  const policy = { ...defaultPolicy, tenants: { small: { ...small, ...more } } };
  await writeFile(join(system.stateDir, 'policy.json'), expectValue(encodePolicy(policy)));
});
after(() => system.stop());

function listed(key: SigningKey, owner: string, scope: Partial<StoredKey['scope']> = {}): StoredKey {
  const all = { plugins: ['*'], tenants: ['*'], gpu: true, network: true };
  const [notBefore, expires] = [formatInstant(Date.now() - dayMs), formatInstant(Date.now() + dayMs)];
  return { publicKey: publicKeyToPem(key.publicKey), owner, scope: { ...all, ...scope }, notBefore, expires };
}

/** The next version, whatever the content's own says. */
const publish = (content: TrustStoreContent) =>
  system.publishTrust({ ...content, version: system.trust.version + 1 });

interface Attack {
  readonly what: string;
  readonly reason: string;
  readonly request: () => Partial<SubmitRequest>;
  readonly tenant?: string;
  readonly trust?: (content: TrustStoreContent) => TrustStoreContent;
}

const signed = (changes: Partial<PluginStatement> = {}, key?: SigningKey): Uint8Array =>
  system.sign('canary.sh', canary, changes, key);

/** The valid envelope with other JSON in it. */
function bent(change: (envelope: Record<string, unknown>) => void): Uint8Array {
  const envelope = JSON.parse(text(signed()));
  change(envelope);
  return Buffer.from(JSON.stringify(envelope));
}

/** The valid envelope over a changed statement: the signature stays. */
function raised(change: (predicate: Record<string, unknown>) => void): Uint8Array {
  return bent((envelope) => {
    const statement = JSON.parse(Buffer.from(String(envelope.payload), 'base64').toString());
    change(statement.predicate);
    envelope.payload = Buffer.from(JSON.stringify(statement)).toString('base64');
  });
}

const limited = (limits: SubmitRequest['limits']) => () => ({ envelope: signed(), limits });

const attacks: readonly Attack[] = [
  { what: 'no envelope', reason: 'UNSIGNED', request: () => ({ envelope: null }) },
  {
    what: 'payload type swapped',
    reason: 'MALFORMED',
    request: () => ({
      envelope: bent((envelope) => {
        envelope.payloadType = 'application/vnd.sandbus.trust-store+json';
      }),
    }),
  },
  {
    what: 'the statement of plugin A on plugin B',
    reason: 'DIGEST_MISMATCH',
    request: () => ({ envelope: system.sign('canary.sh', other) }),
  },
  {
    what: 'another byte in the file',
    reason: 'DIGEST_MISMATCH',
    request: () => ({
      envelope: signed(),
      plugin: { name: 'canary.sh', bytes: Buffer.concat([canary, Buffer.from('\n')]) },
    }),
  },
  {
    what: 'extension renamed',
    reason: 'RUNTIME_MISMATCH',
    request: () => ({ envelope: signed(), plugin: { name: 'canary.py', bytes: canary } }),
  },
  {
    what: 'file renamed',
    reason: 'NAME_MISMATCH',
    request: () => ({ envelope: signed(), plugin: { name: 'trusted.sh', bytes: canary } }),
  },
  {
    what: 'GPU flag raised in the statement',
    reason: 'BAD_SIGNATURE',
    request: () => ({
      requiresGpu: true,
      envelope: raised((predicate) => {
        predicate.requiresGpu = true;
      }),
    }),
  },
  {
    what: 'limit raised in the statement',
    reason: 'BAD_SIGNATURE',
    request: () => ({
      envelope: raised((predicate) => {
        predicate.limits = { ...(predicate.limits as object), memoryBytes: 2 ** 40 };
      }),
    }),
  },
  {
    what: 'GPU without a signature for it',
    reason: 'GPU_NOT_SIGNED',
    request: () => ({ envelope: signed(), requiresGpu: true }),
  },
  {
    what: 'network without a signature for it',
    reason: 'NETWORK_NOT_SIGNED',
    request: () => ({ envelope: signed(), network: 'host' }),
  },
  {
    what: 'network against the policy',
    reason: 'LIMIT_EXCEEDED',
    request: () => ({ envelope: signed({ network: 'host' }), network: 'host' }),
  },
  {
    what: 'memory beyond the signature',
    reason: 'LIMIT_EXCEEDED',
    request: limited({ memoryBytes: 2 ** 30 }),
  },
  { what: 'wall time beyond the signature', reason: 'LIMIT_EXCEEDED', request: limited({ wallMs: 120_001 }) },
  { what: 'CPU beyond the signature', reason: 'LIMIT_EXCEEDED', request: limited({ cpuMillis: 2001 }) },
  { what: 'processes beyond the signature', reason: 'LIMIT_EXCEEDED', request: limited({ processes: 257 }) },
  ...Object.entries({
    memoryBytes: 65 * mebibyte,
    cpuMillis: 501,
    wallMs: 5001,
    cpuTimeMs: 2001,
    processes: 17,
    outputBytes: mebibyte + 1,
    tmpBytes: mebibyte + 1,
  }).map(([field, most]) => ({
    what: `${field} beyond the policy of the tenant`,
    reason: 'LIMIT_EXCEEDED',
    tenant: 'small',
    request: limited({ [field]: most }),
  })),
  {
    what: 'GPU against the policy of the tenant',
    reason: 'LIMIT_EXCEEDED',
    tenant: 'small',
    request: () => ({ envelope: signed({ requiresGpu: true }), requiresGpu: true }),
  },
  {
    what: 'attempts against the policy of the tenant',
    reason: 'LIMIT_EXCEEDED',
    tenant: 'small',
    request: () => ({ envelope: signed(), maxAttempts: 2 }),
  },
  {
    what: 'expired statement',
    reason: 'EXPIRED',
    request: () => ({ envelope: signed({ expiresMs: Date.now() - 1000 }) }),
  },
  {
    what: 'statement of tomorrow',
    reason: 'NOT_YET_VALID',
    request: () => ({ envelope: signed({ notBeforeMs: Date.now() + dayMs / 2 }) }),
  },
  { what: 'expired key', reason: 'EXPIRED', request: () => ({ envelope: signed({}, late) }) },
  { what: 'key of tomorrow', reason: 'NOT_YET_VALID', request: () => ({ envelope: signed({}, early) }) },
  { what: 'unknown key', reason: 'UNKNOWN_KEY', request: () => ({ envelope: signed({}, generateKey()) }) },
  { what: 'key out of scope', reason: 'OUT_OF_SCOPE', request: () => ({ envelope: signed({}, narrow) }) },
  {
    what: 'root key for a plugin',
    reason: 'UNKNOWN_KEY',
    request: () => ({ envelope: signed({}, system.root) }),
  },
  {
    what: 'revoked key',
    reason: 'REVOKED',
    request: () => ({ envelope: signed() }),
    trust: (content) => withRevokedKey(content, system.key.keyId),
  },
  {
    what: 'revoked digest',
    reason: 'REVOKED',
    request: () => ({ envelope: signed() }),
    trust: (content) => withRevokedDigest(content, sha256(canary)),
  },
  {
    what: 'threshold 2, one signature',
    reason: 'THRESHOLD_NOT_MET',
    request: () => ({ envelope: signed() }),
    trust: (content) => ({ ...content, threshold: 2 }),
  },
  {
    what: 'threshold 2, one signer twice',
    reason: 'THRESHOLD_NOT_MET',
    request: () => ({ envelope: cosigned(system.key) }),
    trust: (content) => ({ ...content, threshold: 2 }),
  },
  {
    what: 'a trust store that has expired',
    reason: 'TRUST_STORE_EXPIRED',
    request: () => ({ envelope: signed() }),
    trust: (content) => ({ ...content, expires: formatInstant(Date.now() - 1000) }),
  },
  {
    what: 'a trust store that trusts nobody',
    reason: 'NO_TRUST_STORE',
    request: () => ({ envelope: signed() }),
    trust: (content) => ({ ...content, keys: [] }),
  },
];

const cosigned = (key: SigningKey) => cosignEnvelope(expectValue(parseEnvelope(signed())), key);

async function submit(request: Partial<SubmitRequest>, tenant = 'acme') {
  const client =
    tenant === 'acme'
      ? system.client
      : await connect({ url: system.url, tenant, credentials: system.system.credentialsOf(tenant) });
  try {
    const plugin = { name: 'canary.sh', bytes: canary };
    const { jobId } = await client.submit({ plugin, envelope: null, ...request });
    const result = await client.wait(jobId);
    const kinds: string[] = [];
    for await (const { record } of client.records({ jobId, follow: false })) kinds.push(record.kind);
    return { result, kinds };
  } finally {
    if (client !== system.client) await client.close();
  }
}

describe('refused, and nothing ran', () => {
  for (const { what, reason, request, tenant, trust } of attacks)
    test(`${what}: ${reason}`, async () => {
      if (trust !== undefined) await publish(trust(base));
      try {
        const { result, kinds } = await submit(request(), tenant);
        assert.equal(result.kind === 'rejected' ? result.event.reason : result.kind, reason);
        assert.deepEqual(kinds, ['submitted', 'rejected']);
      } finally {
        if (trust !== undefined) await publish(base);
      }
    });
});

describe('allowed: the refusals above are not for another reason', () => {
  const allowed: readonly Omit<Attack, 'reason'>[] = [
    { what: 'the canary as it was signed', request: () => ({ envelope: signed() }) },
    { what: 'all that was signed', request: limited({ memoryBytes: 512 * mebibyte, processes: 256 }) },
    {
      what: 'all that the policy of the tenant allows',
      tenant: 'small',
      request: limited({ memoryBytes: 64 * mebibyte, cpuMillis: 500, wallMs: 5000, processes: 16 }),
    },
    {
      what: 'threshold 2, two owners',
      request: () => ({ envelope: cosigned(secondOwner) }),
      trust: (content) => ({ ...content, threshold: 2 }),
    },
  ];
  for (const { what, request, tenant, trust } of allowed)
    test(what, async () => {
      if (trust !== undefined) await publish(trust(base));
      const event = finished((await submit(request(), tenant)).result);
      assert.deepEqual(
        [event.outcome, text(event.stdout.inline)],
        ['exited', 'alive\n'],
        JSON.stringify(event.error),
      );
      assert.deepEqual(
        event.artifacts.map(({ name }) => name),
        ['canary'],
      );
      if (trust !== undefined) await publish(base);
    });
});
