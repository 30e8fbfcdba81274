/** Leaves: the fast encoding is the codec's, and what is no leaf is refused as the codec does. */
import assert from 'node:assert/strict';
import { randomBytes, randomInt } from 'node:crypto';
import { test } from 'node:test';
import type { AuditLeaf } from '../../platform/codec.ts';
import { decodeAs, encode } from '../../platform/codec.ts';
import { isPayloadOf, leafBytes, newSalt, payloadHash } from './leaf.ts';
import { fastLeafBytes, fastLeafHash } from './leaf-encoder.ts';
import { hashLeaf } from './merkle.ts';

const leaf: AuditLeaf = {
  sequence: 0,
  recordedAt: 1_800_000_000_000_000,
  subject: 'job.submitted.acme.0198c2f0-0000-7000-8000-000000000001',
  eventId: 'submitter:submitted:0198c2f0-0000-7000-8000-000000000001:SUBMISSIONS:1',
  signer: 'submitter',
  payloadHash: randomBytes(32),
  previousLeafHash: new Uint8Array(),
};

const counts = [0, 1, 63, 64, 127, 128, 8191, 8192, 2 ** 31 - 1, 2 ** 31, 2 ** 32, 2 ** 45 + 1, 2 ** 52 - 1];
const texts = [
  '',
  'a',
  'x'.repeat(63),
  'x'.repeat(64),
  'ü',
  '日本語',
  '😀'.repeat(50),
  'x'.repeat(5000),
  '\u0000',
];
const bytes = [new Uint8Array(), randomBytes(1), randomBytes(32), randomBytes(9000)];

test('every field is encoded as the codec does', () => {
  const cases: AuditLeaf[] = [
    leaf,
    ...counts.flatMap((count) => [
      { ...leaf, sequence: count },
      { ...leaf, recordedAt: count },
    ]),
    ...texts.flatMap((text) => [
      { ...leaf, subject: text },
      { ...leaf, eventId: text },
      { ...leaf, signer: text },
    ]),
    ...bytes.flatMap((some) => [
      { ...leaf, payloadHash: some },
      { ...leaf, previousLeafHash: some },
    ]),
    ...Array.from({ length: 500 }, () => ({
      sequence: randomInt(2 ** 47),
      recordedAt: randomInt(2 ** 47),
      subject: randomBytes(randomInt(200)).toString('latin1'),
      eventId: randomBytes(randomInt(200)).toString('hex'),
      signer: randomBytes(randomInt(20)).toString('base64'),
      payloadHash: randomBytes(randomInt(64)),
      previousLeafHash: randomBytes(randomInt(64)),
    })),
  ];
  for (const one of cases) {
    assert.deepEqual(fastLeafBytes(one), encode('AuditLeaf', one), JSON.stringify(one).slice(0, 200));
    assert.deepEqual(fastLeafHash(one), hashLeaf(encode('AuditLeaf', one)));
    assert.equal(decodeAs('AuditLeaf', leafBytes(one)).subject, one.subject);
  }
});

test('what does not fit is refused', () => {
  const wrong = [
    { sequence: 0.5 },
    { recordedAt: Number.NaN },
    { subject: 1 },
    { signer: null },
    { payloadHash: 'x' },
  ];
  for (const change of wrong)
    assert.throws(() => leafBytes({ ...leaf, ...change } as unknown as AuditLeaf), /does not fit its schema/);
});

test('a payload is known by its salt', () => {
  const [salt, payload] = [newSalt(), randomBytes(100)];
  const named = { payloadHash: payloadHash(salt, payload) };
  assert.equal(isPayloadOf(named, salt, payload), true);
  assert.equal(isPayloadOf(named, newSalt(), payload), false);
  const whole = Buffer.concat([salt, payload]);
  assert.equal(isPayloadOf(named, whole.subarray(0, 15), whole.subarray(15)), false);
});
