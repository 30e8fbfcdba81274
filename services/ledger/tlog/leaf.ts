/** Leaves of the Merkle tree, pure: the same record always gives the same bytes. */
import { randomBytes } from 'node:crypto';
import type { AuditLeaf, AuditRecord } from '../../platform/codec.ts';
import { encode } from '../../platform/codec.ts';
import { fastLeafBytes, fastLeafHash } from './leaf-encoder.ts';
import { hashLeaf, sameHash, sha256 } from './merkle.ts';

/** Always so many: where the salt ends and the payload begins must not be anybody's choice. */
const saltBytes = 16;

/** Hides what a short payload was, once salt and payload are erased. */
export function newSalt(): Uint8Array {
  if (unused.length < saltBytes) unused = randomBytes(256 * saltBytes);
  const salt = new Uint8Array(unused.subarray(0, saltBytes));
  unused = unused.subarray(saltBytes);
  return salt;
}
/** Random bytes, each for one salt: a call for each salt would cost several times as much. */
let unused = Buffer.alloc(0);

export function payloadHash(salt: Uint8Array, payload: Uint8Array): Uint8Array {
  const length = salt.length + payload.length;
  if (saltedInput.length < length) saltedInput = Buffer.alloc(2 * length);
  saltedInput.set(salt, 0);
  saltedInput.set(payload, salt.length);
  return sha256(saltedInput.subarray(0, length));
}
/** What is hashed, one at a time. */
let saltedInput = Buffer.alloc(64 * 1024);

/** Whether this is the payload that a leaf names. */
export function isPayloadOf(
  leaf: Pick<AuditLeaf, 'payloadHash'>,
  salt: Uint8Array,
  payload: Uint8Array,
): boolean {
  return salt.length === saltBytes && sameHash(payloadHash(salt, payload), leaf.payloadHash);
}

/** What the tree hashes: AuditLeaf, single-object encoded. Throws an Error, a bug of the caller, for what does not fit. */
export function leafBytes(record: AuditLeaf): Uint8Array {
  const { sequence, recordedAt, subject, eventId, signer, payloadHash, previousLeafHash } = record;
  const leaf = { sequence, recordedAt, subject, eventId, signer, payloadHash, previousLeafHash };
  return fastLeafBytes(leaf) ?? encode('AuditLeaf', leaf);
}

/** RFC 6962, section 2.1: SHA-256(0x00 || leaf). */
export const leafHash = (record: AuditLeaf): Uint8Array =>
  fastLeafHash(record) ?? hashLeaf(leafBytes(record));

/** The record with its hashes. */
export function sealed(
  record: Omit<AuditRecord, 'payload' | 'payloadSalt' | 'payloadHash' | 'leafHash'>,
  payload: Uint8Array,
) {
  const { sequence, recordedAt, subject, eventId, signer, previousLeafHash } = record;
  const payloadSalt = newSalt();
  const ofPayload = payloadHash(payloadSalt, payload);
  const leaf = { sequence, recordedAt, subject, eventId, signer, payloadHash: ofPayload, previousLeafHash };
  return {
    ...record,
    payload,
    payloadSalt,
    payloadHash: ofPayload,
    leafHash: leafHash(leaf),
  } satisfies AuditRecord;
}
