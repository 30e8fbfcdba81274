import assert from 'node:assert/strict';
import { createPrivateKey, createPublicKey, generateKeyPairSync, sign } from 'node:crypto';
import { describe, test } from 'node:test';
import { ALICE, expectValue } from './fixture.ts';
import {
  generateKey,
  keyIdOf,
  privateKeyFromPem,
  privateKeyToPem,
  publicKeyFromText,
  publicKeyToPem,
  signMessage,
} from './index.ts';

const alicePem = publicKeyToPem(ALICE.publicKey);
const aliceBase64 = Buffer.from(ALICE.publicKey).toString('base64');

test('a key survives being written and read', () => {
  const key = generateKey();
  assert.deepEqual(expectValue(privateKeyFromPem(privateKeyToPem(key))), key);
  assert.deepEqual(expectValue(publicKeyFromText(publicKeyToPem(key.publicKey))).publicKey, key.publicKey);
  assert.notEqual(generateKey().keyId, key.keyId);
});

test('the PEM is what OpenSSL reads and writes', () => {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const pem = privateKey.export({ format: 'pem', type: 'pkcs8' }).toString();
  const key = expectValue(privateKeyFromPem(pem));
  assert.equal(privateKeyToPem(key), pem);
  assert.equal(publicKeyToPem(key.publicKey), publicKey.export({ format: 'pem', type: 'spki' }).toString());
  assert.equal(createPublicKey(alicePem).asymmetricKeyType, 'ed25519');
  const message = Buffer.from('the same bytes from both');
  assert.deepEqual(Buffer.from(signMessage(key, message)), sign(null, message, createPrivateKey(pem)));
});

describe('a public key is read', () => {
  const forms = {
    'as PEM': alicePem,
    'as PEM with Windows line ends': alicePem.replaceAll('\n', '\r\n'),
    'as PEM with space around': `\n ${alicePem}\n`,
    'as Base64': aliceBase64,
    'as Base64 for URLs': Buffer.from(ALICE.publicKey).toString('base64url'),
  };
  for (const [name, text] of Object.entries(forms)) {
    test(name, () => {
      const { keyId, publicKey } = expectValue(publicKeyFromText(text));
      assert.deepEqual(publicKey, ALICE.publicKey);
      assert.equal(keyId, keyIdOf(ALICE.publicKey));
    });
  }
});

const pemOf = (type: 'ed448' | 'x25519'): string =>
  type === 'ed448'
    ? generateKeyPairSync('ed448').publicKey.export({ format: 'pem', type: 'spki' }).toString()
    : generateKeyPairSync('x25519').publicKey.export({ format: 'pem', type: 'spki' }).toString();

describe('a public key is refused', () => {
  const texts = {
    'when it is empty': '',
    'when it is a private key': privateKeyToPem(ALICE),
    'when it is of another kind': pemOf('ed448'),
    'when it is a key for key agreement': pemOf('x25519'),
    'when it is too short': aliceBase64.slice(4),
    'when it is too long': `${'AAAA'}${aliceBase64}`,
    'when it is huge': aliceBase64.repeat(1000),
    'when two follow each other': alicePem + alicePem,
    'when text precedes it': `owner: Alice\n${alicePem}`,
    'when its Base64 has been bent': alicePem.replace('MCow', 'MC*w'),
  };
  for (const [name, text] of Object.entries(texts)) {
    test(name, () => {
      const read = publicKeyFromText(text);
      assert.ok(!read.ok);
      assert.equal(read.reason, 'MALFORMED');
    });
  }
});

describe('a private key is refused, and the refusal does not repeat it', () => {
  const rsa = generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey;
  const encrypted = createPrivateKey(privateKeyToPem(ALICE));
  const texts = {
    'when it is empty': '',
    'when it is a public key': alicePem,
    'when it is encrypted': encrypted
      .export({ format: 'pem', type: 'pkcs8', cipher: 'aes-256-cbc', passphrase: 'secret' })
      .toString(),
    'when it is RSA': rsa.export({ format: 'pem', type: 'pkcs8' }).toString(),
    'when it is cut': privateKeyToPem(ALICE).slice(0, 60),
    'when it is damaged': privateKeyToPem(ALICE).replace('MC4C', 'MC4D'),
    'when it is huge': privateKeyToPem(ALICE).padEnd(5000),
  };
  for (const [name, text] of Object.entries(texts)) {
    test(name, () => {
      const read = privateKeyFromPem(text);
      assert.ok(!read.ok);
      assert.equal(read.reason, 'MALFORMED');
      assert.ok(!read.detail.includes(Buffer.from(ALICE.seed).toString('base64')));
    });
  }
});
