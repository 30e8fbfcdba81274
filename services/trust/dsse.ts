// DSSE envelopes (https://github.com/secure-systems-lab/dsse, version 1.0): how they are read, built and what exactly a
// signature covers. Nothing here knows what the payload means.

import { z } from 'zod';
import { decodeBase64, parseDocument } from './formats.ts';
import type { SigningKey } from './keys.ts';
import { accept, type Checked, reject } from './reasons.ts';
import { signMessage } from './signature.ts';

/** Enough for every threshold that makes sense, and few enough that judging a hostile envelope stays cheap. */
export const MAX_SIGNATURES = 8;

/** Statements are about 1 KiB. Trust stores, which travel in envelopes too, pass a larger bound. */
export const MAX_ENVELOPE_BYTES = 64 * 1024;

export type EnvelopeSignature = {
  /** A hint by the signer, authenticated by nothing: it may speed up the search for the key and decides nothing. */
  readonly keyIdHint: string | null;
  readonly signature: Uint8Array;
};

export type Envelope = {
  readonly payloadType: string;
  readonly payload: Uint8Array;
  readonly signatures: readonly EnvelopeSignature[];
};

/** The shape of an envelope inside another JSON document. */
export const envelopeShape = z.strictObject({
  payloadType: z.string().min(1).max(256),
  payload: z.string(),
  signatures: z.array(z.strictObject({ keyid: z.string().max(256).optional(), sig: z.string().max(256) })),
});

export type EnvelopeJson = z.infer<typeof envelopeShape>;

/**
 * The bytes that are signed. The lengths make the encoding unambiguous: no payload type and payload can be shifted into
 * another pair with the same encoding.
 */
export function preAuthenticationEncoding(payloadType: string, payload: Uint8Array): Uint8Array {
  const type = Buffer.from(payloadType, 'utf8');
  return Buffer.concat([
    Buffer.from(`DSSEv1 ${type.length} `),
    type,
    Buffer.from(` ${payload.length} `),
    payload,
  ]);
}

/** Reads an envelope from untrusted bytes. Says nothing about who signed it. */
export function parseEnvelope(bytes: Uint8Array, maxBytes = MAX_ENVELOPE_BYTES): Checked<Envelope> {
  const json = parseDocument(bytes, { maxBytes, maxDepth: 3, maxValues: 64 }, envelopeShape, 'envelope');
  return json.ok ? decodeEnvelope(json.value) : json;
}

/** The second half of reading: from the JSON shape to bytes. */
export function decodeEnvelope(json: EnvelopeJson): Checked<Envelope> {
  if (json.signatures.length === 0) return reject('UNSIGNED', 'envelope: its list of signatures is empty');
  if (json.signatures.length > MAX_SIGNATURES) {
    return reject(
      'MALFORMED',
      `envelope: ${json.signatures.length} signatures, at most ${MAX_SIGNATURES} are read`,
    );
  }
  const payload = decodeBase64(json.payload);
  if (payload === null) return reject('MALFORMED', 'envelope: the payload is not Base64');
  const signatures: EnvelopeSignature[] = [];
  for (const [index, { keyid, sig }] of json.signatures.entries()) {
    const signature = decodeBase64(sig);
    if (signature === null) return reject('MALFORMED', `envelope: signature ${index} is not Base64`);
    signatures.push({ keyIdHint: keyid ?? null, signature });
  }
  return accept({ payloadType: json.payloadType, payload, signatures });
}

/** Signs exactly these payload bytes with every given key. */
export function sealEnvelope(
  payloadType: string,
  payload: Uint8Array,
  keys: readonly SigningKey[],
): Envelope {
  return { payloadType, payload, signatures: keys.map((key) => sign(payloadType, payload, key)) };
}

/** The same, written to the bytes of an envelope file. */
export function signEnvelope(
  payloadType: string,
  payload: Uint8Array,
  keys: readonly SigningKey[],
): Uint8Array {
  return encodeEnvelope(sealEnvelope(payloadType, payload, keys));
}

/** Adds the signature of another key; the payload stays byte for byte what the others signed. */
export function cosignEnvelope(envelope: Envelope, key: SigningKey): Uint8Array {
  const added = sign(envelope.payloadType, envelope.payload, key);
  return encodeEnvelope({ ...envelope, signatures: [...envelope.signatures, added] });
}

export function envelopeJson(envelope: Envelope): EnvelopeJson {
  return {
    payloadType: envelope.payloadType,
    payload: Buffer.from(envelope.payload).toString('base64'),
    signatures: envelope.signatures.map(({ keyIdHint, signature }) => ({
      ...(keyIdHint === null ? {} : { keyid: keyIdHint }),
      sig: Buffer.from(signature).toString('base64'),
    })),
  };
}

export function encodeEnvelope(envelope: Envelope): Uint8Array {
  return Buffer.from(`${JSON.stringify(envelopeJson(envelope), null, 2)}\n`);
}

function sign(payloadType: string, payload: Uint8Array, key: SigningKey): EnvelopeSignature {
  const signature = signMessage(key, preAuthenticationEncoding(payloadType, payload));
  return { keyIdHint: key.keyId, signature };
}
