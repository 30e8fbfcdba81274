/** Records that AUDIT has kept and an older database has lost: what makes one the next of this ledger. Pure. */
import type { AuditRecord } from '../platform/codec.ts';
import type { MessageFacts } from './message-facts.ts';
import type { Described } from './plan.ts';
import { describedAs } from './plan.ts';
import { leafHash, payloadHash } from './tlog/leaf.ts';
import { sameHash } from './tlog/merkle.ts';

/** What the ledger expects of its next record. */
export interface NextRecord {
  readonly sequence: number;
  readonly tenantSequence: number;
  /** Of the record before. */
  readonly recordedAt: number;
  /** Leaf hash of the job's record before; empty for its first. */
  readonly previousLeafHash: Uint8Array;
  readonly isKnownEvent: boolean;
}

/** The message of which the record was made, as far as the record tells. */
export function ofRecord(record: AuditRecord): Described {
  const { tenant, jobId, kind, eventId, signer, signature, traceparent } = record;
  const facts: MessageFacts = {
    ...{ tenant, jobId, kind, eventId, signer, signature, traceparent },
    idIsGiven: true,
    cause: null,
  };
  const { stream, streamSequence, subject, payload } = record;
  const message = {
    stream,
    sequence: streamSequence,
    subject,
    data: payload ?? new Uint8Array(),
    headers: {},
  };
  return describedAs(message, facts);
}

/** Null, or what is wrong with the record, as the end of a sentence. */
export function refillFault(record: AuditRecord, next: NextRecord): string | null {
  const { payload, payloadSalt } = record;
  if (record.sequence !== next.sequence) return `comes where ${next.sequence} is next`;
  if (record.tenantSequence !== next.tenantSequence)
    return `is number ${record.tenantSequence} of its tenant where ${next.tenantSequence} is next`;
  if (record.recordedAt < next.recordedAt) return 'is older than the one before it';
  if (next.isKnownEvent) return 'is an event that is recorded already';
  if (!sameHash(record.previousLeafHash, next.previousLeafHash))
    return "does not follow its job's last record";
  if (payload === null) return 'has no payload';
  if (!sameHash(record.payloadHash, payloadHash(payloadSalt, payload)))
    return 'has another payload than it says';
  if (!sameHash(record.leafHash, leafHash(record))) return 'has another leaf hash than its content';
  return null;
}
