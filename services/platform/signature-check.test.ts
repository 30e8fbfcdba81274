/** Signatures that are checked on other threads get the verdict of OpenSSL, which checks them everywhere else. */
import assert from 'node:assert/strict';
import type { KeyObject } from 'node:crypto';
import { createPublicKey, generateKeyPairSync, sign, verify } from 'node:crypto';
import { test } from 'node:test';
import { SignatureChecks } from './signature-check.ts';

const checks = new SignatureChecks();
const { publicKey, privateKey } = generateKeyPairSync('ed25519');
const other = generateKeyPairSync('ed25519').publicKey;
const data = Buffer.from('an event');
const good = sign(null, data, privateKey);

/** Order of the base point, RFC 8032, section 5.1. */
const order = 2n ** 252n + 27742317777372353535851937790883648493n;

const spkiPrefix = Buffer.from('302a300506032b6570032100', 'hex');
const keyOf = (raw: Buffer): KeyObject =>
  createPublicKey({ key: Buffer.concat([spkiPrefix, raw]), format: 'der', type: 'spki' });
/** The neutral element: as a key and a signature's R it fits every message. */
const neutral = Buffer.concat([Buffer.from([1]), Buffer.alloc(31)]);

const changed = (at: number) => Buffer.from(good.map((byte, index) => (index === at ? byte ^ 1 : byte)));

function plusOrder(signature: Buffer): Buffer {
  const s = BigInt(`0x${Buffer.from(signature.subarray(32)).reverse().toString('hex')}`) + order;
  return Buffer.concat([
    signature.subarray(0, 32),
    Buffer.from(s.toString(16).padStart(64, '0'), 'hex').reverse(),
  ]);
}

const cases: [what: string, key: KeyObject, signature: Buffer, isValid: boolean][] = [
  ['as it was made', publicKey, good, true],
  ['of another key', other, good, false],
  ['with another R', publicKey, changed(0), false],
  ['with another S', publicKey, changed(32), false],
  ['with S + L, which is the same to the curve', publicKey, plusOrder(good), false],
  ['of a key of small order', keyOf(neutral), Buffer.concat([neutral, Buffer.alloc(32)]), false],
];

for (const [what, key, signature, isValid] of cases)
  test(`a signature ${what}`, async () => {
    assert.equal(await checks.check(key, data, signature), isValid);
    assert.equal(verify(null, data, key, signature), isValid);
  });

test('signatures of all lengths of messages get the verdict of OpenSSL', async () => {
  const lengths = Array.from({ length: 300 }, (_, index) => index * 7);
  const signed = lengths.map((length) => {
    const bytes = Buffer.alloc(length, length);
    const signature = sign(null, bytes, privateKey);
    if (length % 3 === 0) signature.writeUInt8(signature.readUInt8(5) ^ 1, 5);
    return { bytes, signature };
  });
  const verdicts = await Promise.all(signed.map((one) => checks.check(publicKey, one.bytes, one.signature)));
  assert.deepEqual(
    verdicts,
    signed.map(({ bytes, signature }) => verify(null, bytes, publicKey, signature)),
  );
});
