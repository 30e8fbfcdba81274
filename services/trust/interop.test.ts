// Tools that were not written here must agree with us: openssl about keys and signatures, securesystemslib (the
// reference implementation of DSSE in Python) about envelopes.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { ALICE, envelopeFor, expectValue, facts, plugin, request, store, storedKey } from './fixture.ts';
import {
  decideTrust,
  parseEnvelope,
  preAuthenticationEncoding,
  privateKeyFromPem,
  privateKeyToPem,
  publicKeyFromText,
  publicKeyToPem,
  STATEMENT_PAYLOAD_TYPE,
  statementFor,
  verifyStrict,
} from './index.ts';

let folder = '';
before(() => {
  folder = mkdtempSync(join(tmpdir(), 'sandbus-interop-'));
});
after(() => rmSync(folder, { recursive: true }));

function run(command: string, args: readonly string[], input?: string): string {
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    cwd: folder,
    input,
    encoding: 'utf8',
  });
  assert.equal(status, 0, `${command} ${args.join(' ')}: ${error ?? stderr}`);
  return stdout;
}

function missing(command: string, args: readonly string[], what: string): string | false {
  return spawnSync(command, args).status === 0 ? false : `${what} is not installed`;
}

describe('openssl', { skip: missing('openssl', ['version'], 'openssl') }, () => {
  test('makes a key that signs a plugin', () => {
    run('openssl', ['genpkey', '-algorithm', 'ed25519', '-out', 'key.pem']);
    run('openssl', ['pkey', '-in', 'key.pem', '-pubout', '-out', 'key.pub.pem']);
    const pem = readFileSync(join(folder, 'key.pem'), 'utf8');
    const key = expectValue(privateKeyFromPem(pem));
    assert.equal(privateKeyToPem(key), pem, 'we write the file that openssl wrote');
    const publicPem = readFileSync(join(folder, 'key.pub.pem'), 'utf8');
    assert.equal(expectValue(publicKeyFromText(publicPem)).keyId, key.keyId);
    const trustStore = store({ keys: [{ ...storedKey(key, 'Olga'), publicKey: publicPem }] });
    assert.ok(decideTrust(request({ envelope: envelopeFor(plugin(), [key]) }), facts({ trustStore })).ok);
  });

  test('verifies our signature', () => {
    const { payloadType, payload, signatures } = expectValue(parseEnvelope(envelopeFor(plugin())));
    writeFileSync(join(folder, 'signed'), preAuthenticationEncoding(payloadType, payload));
    writeFileSync(join(folder, 'signature'), signatures[0]?.signature ?? '');
    writeFileSync(join(folder, 'alice.pub.pem'), publicKeyToPem(ALICE.publicKey));
    const key = ['-pubin', '-inkey', 'alice.pub.pem'];
    run('openssl', ['pkeyutl', '-verify', ...key, '-rawin', '-in', 'signed', '-sigfile', 'signature']);
  });

  test('makes a signature that we verify', () => {
    writeFileSync(join(folder, 'alice.pem'), privateKeyToPem(ALICE));
    writeFileSync(join(folder, 'message'), 'signed by openssl');
    const files = ['-rawin', '-in', 'message', '-out', 'message.sig'];
    run('openssl', ['pkeyutl', '-sign', '-inkey', 'alice.pem', ...files]);
    const signature = readFileSync(join(folder, 'message.sig'));
    assert.ok(verifyStrict(ALICE.publicKey, Buffer.from('signed by openssl'), signature));
  });
});

const SIGN = `
import json, sys
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from securesystemslib.dsse import Envelope
from securesystemslib.signer import CryptoSigner
job = json.load(sys.stdin)
envelope = Envelope(job["payload"].encode(), job["payloadType"], {})
envelope.sign(CryptoSigner(load_pem_private_key(job["key"].encode(), None)))
json.dump(envelope.to_dict(), sys.stdout)
`;

const VERIFY = `
import json, sys
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from securesystemslib.dsse import Envelope
from securesystemslib.signer import SSlibKey
job = json.load(sys.stdin)
key = SSlibKey.from_crypto(load_pem_public_key(job["key"].encode()), keyid=job["keyId"])
envelope = Envelope.from_dict(job["envelope"])
assert list(envelope.verify([key], 1)) == [job["keyId"]]
sys.stdout.write(envelope.payload.decode())
`;

const python = ['-c', 'import securesystemslib.dsse, cryptography'];

describe('securesystemslib', { skip: missing('python3', python, 'securesystemslib[crypto]') }, () => {
  test('verifies our envelope', () => {
    const envelope = envelopeFor(plugin());
    const job = {
      key: publicKeyToPem(ALICE.publicKey),
      keyId: ALICE.keyId,
      envelope: JSON.parse(Buffer.from(envelope).toString()),
    };
    const payload = run('python3', ['-c', VERIFY], JSON.stringify(job));
    assert.equal(payload, Buffer.from(expectValue(parseEnvelope(envelope)).payload).toString());
  });

  test('makes an envelope that we accept', () => {
    const payload = Buffer.from(expectValue(statementFor(plugin()))).toString();
    const job = { key: privateKeyToPem(ALICE), payload, payloadType: STATEMENT_PAYLOAD_TYPE };
    const envelope = Buffer.from(run('python3', ['-c', SIGN], JSON.stringify(job)));
    const decision = decideTrust(request({ envelope }), facts());
    assert.ok(decision.ok, decision.ok ? '' : decision.detail);
    assert.deepEqual(decision.keyIds, [ALICE.keyId], 'although that tool has key ids of its own');
  });
});
