/**
 * AuditLeaf in Avro's binary encoding, by hand: the same bytes as the codec's, five times as fast. A ledger is verified
 * by encoding each of its leaves, so this is where the time goes. A test compares the two, field by field.
 */
import type { AuditLeaf } from '../../platform/codec.ts';
import { encode } from '../../platform/codec.ts';
import { sha256 } from './merkle.ts';

/** Before the leaf stands the byte that RFC 6962 hashes with it. */
const start = 1;
const headerBytes = 10;
const nothing = new Uint8Array();
/** C3 01 and the fingerprint of the schema. */
const header = encode('AuditLeaf', {
  ...{ sequence: 0, recordedAt: 0, subject: '', eventId: '', signer: '' },
  ...{ payloadHash: nothing, previousLeafHash: nothing },
}).slice(0, headerBytes);

/** Of a long, and of the length before a string. */
const longestVarint = 10;
/** Three bytes of UTF-8 for each UTF-16 unit are the most. */
const mostBytesOf = (text: string): number => longestVarint + 3 * text.length;

/** One leaf at a time, always in the same place: encoding is synchronous. */
let buffer = Buffer.alloc(4096);
let at = 0;

/** Null for what is no leaf, or not a plain one: the codec then says what is wrong. */
export function fastLeafBytes(leaf: AuditLeaf): Uint8Array | null {
  return encodeLeaf(leaf) ? Buffer.from(buffer.subarray(start, at)) : null;
}

/** SHA-256(0x00 || leaf) without a copy of the leaf. */
export function fastLeafHash(leaf: AuditLeaf): Uint8Array | null {
  return encodeLeaf(leaf) ? sha256(buffer.subarray(0, at)) : null;
}

function encodeLeaf(leaf: AuditLeaf): boolean {
  const { sequence, recordedAt, subject, eventId, signer, payloadHash, previousLeafHash } = leaf;
  if (!(isCount(sequence) && isCount(recordedAt))) return false;
  if (!(isText(subject) && isText(eventId) && isText(signer))) return false;
  if (!(payloadHash instanceof Uint8Array && previousLeafHash instanceof Uint8Array)) return false;
  reserve(
    start +
      headerBytes +
      4 * longestVarint +
      payloadHash.length +
      previousLeafHash.length +
      mostBytesOf(subject) +
      mostBytesOf(eventId) +
      mostBytesOf(signer),
  );
  at = start + headerBytes;
  putLong(sequence);
  putLong(recordedAt);
  putText(subject);
  putText(eventId);
  putText(signer);
  putBytes(payloadHash);
  putBytes(previousLeafHash);
  return true;
}

const isCount = (value: number): boolean => Number.isSafeInteger(value) && value >= 0 && value <= largest;
/** Twice this is still exact. */
const largest = Number.MAX_SAFE_INTEGER / 2;
const isText = (value: string): boolean => typeof value === 'string' && value.isWellFormed();

function reserve(bytes: number): void {
  if (buffer.length < bytes) buffer = Buffer.alloc(2 * bytes);
  buffer.set(header, start);
}

/** Zigzag, then seven bits a byte, the lowest first. Values are not negative here, so zigzag doubles. */
function putLong(value: number): void {
  let rest = value * 2;
  while (rest >= 0x80) {
    buffer[at++] = (rest % 0x80) | 0x80;
    rest = Math.floor(rest / 0x80);
  }
  buffer[at++] = rest;
}

function putText(text: string): void {
  putLong(Buffer.byteLength(text));
  at += buffer.write(text, at);
}

function putBytes(bytes: Uint8Array): void {
  putLong(bytes.length);
  buffer.set(bytes, at);
  at += bytes.length;
}
