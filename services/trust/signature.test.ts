import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import * as ed25519 from '@noble/ed25519';
import { ALICE } from './fixture.ts';
import { checkPublicKey, signMessage, verifyStrict } from './index.ts';
import { verifyWithNoble, verifyWithOpenssl } from './signature.ts';

type Vector = { tcId: number; comment: string; msg: string; sig: string; result: string };
type VectorFile = { testGroups: { publicKey: { pk: string }; tests: Vector[] }[] };

const hex = (text: string): Uint8Array => new Uint8Array(Buffer.from(text, 'hex'));
const VECTORS = new URL('../../../shared/vectors/wycheproof-ed25519.json', import.meta.url);

test('all Wycheproof cases agree', {
  skip: existsSync(VECTORS) ? false : 'no ../shared/vectors here',
}, () => {
  const { testGroups }: VectorFile = JSON.parse(readFileSync(VECTORS, 'utf8'));
  let count = 0;
  for (const { publicKey, tests } of testGroups) {
    for (const { tcId, comment, msg, sig, result } of tests) {
      const valid = verifyStrict(hex(publicKey.pk), hex(msg), hex(sig));
      assert.equal(valid ? 'valid' : 'invalid', result, `case ${tcId} ${comment}`);
      count += 1;
    }
  }
  assert.equal(count, 151);
});

const RFC8032_TEST_2 = {
  key: '3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c',
  message: '72',
  signature:
    '92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da' +
    '085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00',
};

test('the example of RFC 8032 verifies, and nothing near it does', () => {
  const key = hex(RFC8032_TEST_2.key);
  const message = hex(RFC8032_TEST_2.message);
  const signature = hex(RFC8032_TEST_2.signature);
  assert.ok(verifyStrict(key, message, signature));
  for (let at = 0; at < signature.length; at += 1) {
    const bent = signature.slice();
    bent[at] = (bent[at] ?? 0) ^ 0x10;
    assert.ok(!verifyStrict(key, message, bent), `byte ${at} of the signature changed`);
  }
  assert.ok(!verifyStrict(key, hex('73'), signature));
});

describe('input of the wrong form is no signature, and no exception', () => {
  const message = hex('00');
  const good = signMessage(ALICE, message);
  const wrong: [string, Uint8Array, Uint8Array][] = [
    ['an empty signature', ALICE.publicKey, new Uint8Array()],
    ['63 bytes', ALICE.publicKey, good.subarray(1)],
    ['65 bytes', ALICE.publicKey, Buffer.concat([good, hex('00')])],
    ['an empty key', new Uint8Array(), good],
    ['a key of 31 bytes', ALICE.publicKey.subarray(1), good],
    ['a key of 33 bytes', Buffer.concat([ALICE.publicKey, hex('00')]), good],
    ['a key that is no point', hex('02'.padEnd(64, '0')), good],
  ];
  for (const [name, key, signature] of wrong) {
    test(name, () => {
      assert.equal(verifyStrict(key, message, signature), false);
      assert.equal(verifyWithNoble(key, message, signature), false);
      assert.equal(verifyWithOpenssl(key, message, signature), false);
    });
  }
});

/** The points of small order, and ways to write some of them that are not canonical (y of p and more, -0). */
const WEAK_KEYS: [string, string][] = [
  ['the neutral element', '01'.padEnd(64, '0')],
  ['order 2', 'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f'],
  ['order 4', '00'.padEnd(64, '0')],
  ['order 4, negative', `${'00'.repeat(31)}80`],
  ['order 8, first', '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05'],
  ['order 8, second', '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85'],
  ['order 8, third', 'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a'],
  ['order 8, fourth', 'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa'],
  ['the neutral element with a negative zero', `01${'00'.repeat(30)}80`],
  ['p written as zero', `ed${'ff'.repeat(30)}7f`],
  ['p + 1 written as one', `ee${'ff'.repeat(30)}7f`],
];

describe('keys that no honest signer has', () => {
  for (const [name, key] of WEAK_KEYS) {
    test(name, () => {
      assert.ok(!checkPublicKey(hex(key)).ok, 'refused at import');
      // With R the same point and S zero, anybody could sign for such a key.
      const forged = Buffer.concat([hex(key), new Uint8Array(32)]);
      for (let nonce = 0; nonce < 8; nonce += 1) {
        assert.ok(!verifyStrict(hex(key), Buffer.of(nonce), forged), `message ${nonce}`);
      }
    });
  }

  test('a good key with a part of small order', () => {
    const torsion = ed25519.Point.fromHex('26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05');
    const mixed = ed25519.Point.fromBytes(ALICE.publicKey).add(torsion).toBytes();
    assert.ok(!checkPublicKey(mixed).ok);
  });
});

test('a signature whose R has a part of small order: one implementation takes it, both together do not', () => {
  const torsion = ed25519.Point.fromHex('26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05');
  const message = hex('beef');
  const { scalar, pointBytes } = ed25519.utils.getExtendedPublicKey(ALICE.seed);
  const nonce = 12345n;
  const r = ed25519.Point.BASE.multiply(nonce).add(torsion).toBytes();
  const hashed = createHash('sha512').update(r).update(pointBytes).update(message).digest();
  const order = ed25519.Point.CURVE().n;
  const challenge = BigInt(`0x${hashed.reverse().toString('hex')}`) % order;
  const s = (nonce + challenge * scalar) % order;
  const signature = Buffer.concat([r, Buffer.from(s.toString(16).padStart(64, '0'), 'hex').reverse()]);
  assert.equal(verifyWithNoble(ALICE.publicKey, message, signature), true);
  assert.equal(verifyWithOpenssl(ALICE.publicKey, message, signature), false);
  assert.equal(verifyStrict(ALICE.publicKey, message, signature), false);
});
