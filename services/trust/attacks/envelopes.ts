// For tests only: envelopes that are broken, too large, forged or signed by the wrong people.

import { encodeEnvelope, parseEnvelope, sealEnvelope } from '../dsse.ts';
import { ALICE, bend, envelopeFor, expectValue, type JsonObject, MALLORY, plugin } from '../fixture.ts';
import type { RejectReason } from '../reasons.ts';
import { signMessage } from '../signature.ts';
import { type Attack, attack, bentEnvelope } from './attack.ts';

const GROUP_ORDER = 2n ** 252n + 27742317777372353535851937790883648493n;

function goodSignature(): Buffer {
  const [signature] = expectValue(parseEnvelope(envelopeFor(plugin()))).signatures;
  return Buffer.from(signature?.signature ?? []);
}

function withSignature(signature: Uint8Array): Uint8Array {
  return bentEnvelope('signatures.0.sig', Buffer.from(signature).toString('base64'));
}

function flipBit(bytes: Buffer, at: number): Buffer {
  bytes.writeUInt8(bytes.readUInt8(at) ^ 1, at);
  return bytes;
}

/** The same signature with S + L for S: verifiers that do not check the range of S accept it. */
function malleated(): Buffer {
  const signature = goodSignature();
  const s = BigInt(`0x${Buffer.from(signature.subarray(32)).reverse().toString('hex')}`) + GROUP_ORDER;
  Buffer.from(s.toString(16).padStart(64, '0'), 'hex').reverse().copy(signature, 32);
  return signature;
}

function signedWithoutEncoding(): Buffer {
  return Buffer.from(signMessage(ALICE, expectValue(parseEnvelope(envelopeFor(plugin()))).payload));
}

function sealedAs(payloadType: string): Uint8Array {
  const { payload } = expectValue(parseEnvelope(envelopeFor(plugin())));
  return encodeEnvelope(sealEnvelope(payloadType, payload, [ALICE]));
}

const envelopeText = Buffer.from(envelopeFor(plugin())).toString();

const BROKEN_ENVELOPES: readonly [string, RejectReason, Uint8Array | null][] = [
  ['no envelope', 'UNSIGNED', null],
  ['an envelope without signatures', 'UNSIGNED', bentEnvelope('signatures', [])],
  ['an empty envelope', 'MALFORMED', new Uint8Array()],
  ['an envelope that is not JSON', 'MALFORMED', Buffer.from('#!/bin/sh')],
  ['an envelope that is not UTF-8', 'MALFORMED', Buffer.from([0x7b, 0xff, 0x7d])],
  ['a byte-order mark before the envelope', 'MALFORMED', Buffer.from(`\ufeff${envelopeText}`)],
  ['text behind the envelope', 'MALFORMED', Buffer.from(`${envelopeText}{}`)],
  ['an envelope of 100 MB', 'MALFORMED', new Uint8Array(100_000_000)],
  ['10,000 signatures', 'MALFORMED', bentEnvelope('signatures', new Array(10_000).fill({ sig: 'AAAA' }))],
  [
    '10,000 signatures in few bytes',
    'MALFORMED',
    Buffer.from(`{"payloadType":"a","payload":"","signatures":[${'{},'.repeat(10_000)}{}]}`),
  ],
  ['nine signatures', 'MALFORMED', envelopeFor(plugin(), new Array(9).fill(ALICE))],
  ['an unknown field in the envelope', 'MALFORMED', bentEnvelope('comment', 'hello')],
  ['an unknown field beside a signature', 'MALFORMED', bentEnvelope('signatures.0.cert', 'hello')],
  ['two payloads', 'MALFORMED', Buffer.from(envelopeText.replace('"payload":', '"payload": "", "payload":'))],
  [
    'two payloads, one key escaped',
    'MALFORMED',
    Buffer.from(envelopeText.replace('"payload":', '"payl\\u006fad": "", "payload":')),
  ],
  [
    'a key named __proto__',
    'MALFORMED',
    Buffer.from(envelopeText.replace('"payload":', '"__proto__": {}, "payload":')),
  ],
  ['no payload type', 'MALFORMED', bentEnvelope('payloadType', undefined)],
  ['the payload type swapped', 'MALFORMED', bentEnvelope('payloadType', 'application/json')],
  ['another payload type, signed as such', 'MALFORMED', sealedAs('application/json')],
  ['a statement signed as a trust store', 'MALFORMED', sealedAs('application/vnd.sandbus.trust-store+json')],
  ['a payload that is not Base64', 'MALFORMED', bentEnvelope('payload', '{"hello": 1}')],
  ['Base64 with a line break', 'MALFORMED', bentEnvelope('payload', 'aGVs\nbG8=')],
  ['Base64 with stray bits', 'MALFORMED', bentEnvelope('payload', 'aGVsbG9=')],
  ['a payload that is a number', 'MALFORMED', bentEnvelope('payload', 1)],
  ['a signature that is not Base64', 'MALFORMED', bentEnvelope('signatures.0.sig', '%%%')],
  ['a signature that is missing', 'MALFORMED', bentEnvelope('signatures.0.sig', undefined)],
  ['a key id that is a number', 'MALFORMED', bentEnvelope('signatures.0.keyid', 5)],
  ['signatures that are no list', 'MALFORMED', bentEnvelope('signatures', { 0: { sig: '' } })],
];

const BAD_SIGNATURES: readonly [string, RejectReason, Uint8Array][] = [
  ['an empty signature', 'BAD_SIGNATURE', withSignature(new Uint8Array())],
  ['a signature of 63 bytes', 'BAD_SIGNATURE', withSignature(goodSignature().subarray(0, 63))],
  ['a signature of 65 bytes', 'BAD_SIGNATURE', withSignature(Buffer.concat([goodSignature(), Buffer.of(0)]))],
  ['a signature of zeros', 'BAD_SIGNATURE', withSignature(new Uint8Array(64))],
  ['a bit of R flipped', 'BAD_SIGNATURE', withSignature(flipBit(goodSignature(), 3))],
  ['a bit of S flipped', 'BAD_SIGNATURE', withSignature(flipBit(goodSignature(), 40))],
  ['S beyond the group order', 'BAD_SIGNATURE', withSignature(malleated())],
  ['a signature over the bare payload', 'BAD_SIGNATURE', withSignature(signedWithoutEncoding())],
  ['an empty payload', 'BAD_SIGNATURE', bentEnvelope('payload', '')],
  ['a key that nobody listed', 'UNKNOWN_KEY', envelopeFor(plugin(), [MALLORY])],
  ['a stranger who names a listed key', 'BAD_SIGNATURE', forged(ALICE.keyId)],
  ['a stranger who names no key', 'UNKNOWN_KEY', forged(undefined)],
  ['a signature moved from another statement', 'BAD_SIGNATURE', transplanted()],
];

function forged(keyid: string | undefined): Uint8Array {
  const json: JsonObject = JSON.parse(Buffer.from(envelopeFor(plugin(), [MALLORY])).toString());
  return Buffer.from(JSON.stringify(bend(json, 'signatures.0.keyid', keyid)));
}

function transplanted(): Uint8Array {
  const other = expectValue(parseEnvelope(envelopeFor(plugin({ version: '2.0.0' }))));
  return encodeEnvelope({
    ...expectValue(parseEnvelope(envelopeFor(plugin()))),
    signatures: other.signatures,
  });
}

export const ENVELOPE_ATTACKS: readonly Attack[] = [...BROKEN_ENVELOPES, ...BAD_SIGNATURES].map(
  ([name, expected, envelope]) => attack(expected, name, { request: { envelope } }),
);
