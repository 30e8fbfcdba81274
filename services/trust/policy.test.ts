import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { bend, expectValue, type JsonObject, policyContent } from './fixture.ts';
import { ceilingsOf, encodePolicy, parsePolicy } from './index.ts';

const bytes = (json: unknown): Uint8Array => Buffer.from(JSON.stringify(json));

test('a tenant differs from the default only where the policy says so', () => {
  const policy = expectValue(parsePolicy(expectValue(encodePolicy(policyContent()))));
  assert.deepEqual(ceilingsOf(policy, 'acme'), policy.default);
  assert.deepEqual(ceilingsOf(policy, 'constructor'), policy.default);
  assert.deepEqual(ceilingsOf(policy, 'small'), {
    ...policy.default,
    memoryBytes: 64 * 1024 * 1024,
    gpu: false,
    network: false,
  });
});

test('a policy may name no tenants, and its digest is that of its bytes', () => {
  const one = expectValue(parsePolicy(bytes({ default: policyContent().default })));
  const other = expectValue(parsePolicy(bytes({ default: policyContent().default, tenants: {} })));
  assert.notEqual(one.digest, other.digest);
});

describe('a policy is refused', () => {
  const bends: [string, string, unknown, string][] = [
    ['with an unknown field', 'limits', {}, 'limits'],
    ['with a misspelt ceiling', 'default.memoryByte', 1, 'memoryByte'],
    ['with a misspelt ceiling of a tenant', 'tenants.small.memory', 1, 'memory'],
    ['without a ceiling', 'default.tmpBytes', undefined, 'default.tmpBytes'],
    ['without a default', 'default', undefined, 'default'],
    ['with a number as text', 'default.wallMs', '10', 'default.wallMs'],
    ['with no processes', 'default.processes', 0, 'default.processes'],
    ['with a negative ceiling of a tenant', 'tenants.small.cpuMillis', -1, 'tenants.small.cpuMillis'],
    ['with yes for true', 'default.gpu', 'yes', 'default.gpu'],
    ['with a tenant that is no subject token', 'tenants', { 'a.b': {} }, 'a.b'],
  ];
  for (const [name, path, value, named] of bends) {
    test(name, () => {
      const parsed = parsePolicy(bytes(bend(policyContent() as JsonObject, path, value)));
      assert.ok(!parsed.ok);
      assert.equal(parsed.reason, 'MALFORMED');
      assert.ok(parsed.detail.includes(named), parsed.detail);
    });
  }

  test('with all its faults named at once', () => {
    const content = bend(bend(policyContent() as JsonObject, 'default.gpu', 1), 'default.wallMs', 0);
    const parsed = parsePolicy(bytes(content));
    assert.ok(!parsed.ok && parsed.detail.includes('gpu') && parsed.detail.includes('wallMs'));
  });
});
