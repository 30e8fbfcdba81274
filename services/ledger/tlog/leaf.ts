/** Leaves of the Merkle tree, pure: the same record always gives the same bytes. */
import { hash, randomBytes } from 'node:crypto';
import type { AuditLeaf, AuditRecord } from '../../platform/codec.ts';
import { encode } from '../../platform/codec.ts';
import { hashLeaf, sameHash } from './merkle.ts';

/** Always so many: where the salt ends and the payload begins must not be anybody's choice. */
const saltBytes = 16;

/** Hides what a short payload was, once salt and payload are erased. */
export const newSalt = (): Uint8Array => randomBytes(saltBytes);

export const payloadHash = (salt: Uint8Array, payload: Uint8Array): Uint8Array =>
  hash('sha256', Buffer.concat([salt, payload]), 'buffer');

/** Whether this is the payload that a leaf names. */
export function isPayloadOf(
  leaf: Pick<AuditLeaf, 'payloadHash'>,
  salt: Uint8Array,
  payload: Uint8Array,
): boolean {
  return salt.length === saltBytes && sameHash(payloadHash(salt, payload), leaf.payloadHash);
}

/** What the tree hashes: AuditLeaf, single-object encoded. */
export function leafBytes(record: AuditLeaf): Uint8Array {
  const { sequence, recordedAt, subject, eventId, signer, payloadHash, previousLeafHash } = record;
  return encode('AuditLeaf', {
    sequence,
    recordedAt,
    subject,
    eventId,
    signer,
    payloadHash,
    previousLeafHash,
  });
}

/** RFC 6962, section 2.1: SHA-256(0x00 || leaf). */
export const leafHash = (record: AuditLeaf): Uint8Array => hashLeaf(leafBytes(record));

/** The record with its hashes. */
export function sealed(
  record: Omit<AuditRecord, 'payload' | 'payloadSalt' | 'payloadHash' | 'leafHash'>,
  payload: Uint8Array,
) {
  const payloadSalt = newSalt();
  const leaf = { ...record, payloadHash: payloadHash(payloadSalt, payload) };
  return { ...leaf, payload, payloadSalt, leafHash: leafHash(leaf) } satisfies AuditRecord;
}
