/**
 * What each record must agree with: its own leaf hash and payload digest, and the records before it. Keeps a little of
 * every tenant and job: about 200 bytes for each job.
 */
import { authorFault } from '../platform/authorship.ts';
import type { AuditRecord } from '../platform/codec.ts';
import { messageOf } from '../platform/errors.ts';
import type { Keyring } from '../platform/event-keys.ts';
import { isSubmission, jobOfAnySubject } from '../platform/topology.ts';
import { jobKey } from './keys.ts';
import { LastLeaves } from './last-leaves.ts';
import { hasJob, kindOf } from './message-facts.ts';
import type { LedgerReader } from './store.ts';
import { signatureFault } from './tlog/event-signature.ts';
import { isPayloadOf, leafHash } from './tlog/leaf.ts';
import { emptyRoot, hashBytes, sameHash } from './tlog/merkle.ts';
import type { Findings } from './verify-findings.ts';

const nothing = new Uint8Array();
const wrongLeaf =
  'its fields do not give its leaf hash: a field that the tree covers, or the hash, was changed';

export class RecordChecks {
  readonly #findings: Findings;
  readonly #keyring: Keyring | null;
  readonly #jobs = new LastLeaves();
  /** Tenant → the sequence that its next record must have. */
  readonly #tenants = new Map<string, number>();
  /** After a record whose stored leaf hash is not that of its fields: the latter. Its job may go on from either. */
  readonly #doubtful = new Map<string, Uint8Array>();
  #lastRecordedAt = 0;
  #jumps = 0;
  #breaks = 0;
  /** Records whose payload was erased: their digest stands, and can be compared with nothing. */
  erased = 0;
  validSignatures = 0;

  constructor(findings: Findings, keyring: Keyring | null) {
    this.#findings = findings;
    this.#keyring = keyring;
  }

  /**
   * Looks up what the records follow on, for a verification that begins at `start`: what lies before is taken as it is
   * stored.
   */
  async fetchPredecessors(
    reader: LedgerReader,
    records: readonly AuditRecord[],
    start: number,
  ): Promise<void> {
    const asked = new Set<string>();
    for (const record of records) {
      if (!this.#tenants.has(record.tenant))
        this.#tenants.set(record.tenant, await nextOfTenant(reader, record, start));
      const job = hasJob(record) ? jobKey(record) : null;
      if (job !== null && !asked.has(job) && this.#jobs.get(record) === null) {
        asked.add(job);
        const last = await lastBefore(start, -1, (from) => reader.recordsOfJob(record, from, page));
        if (last !== null) this.#jobs.set(record, last.leafHash);
      }
    }
    if (this.#lastRecordedAt === 0 && start > 0)
      this.#lastRecordedAt = (await reader.recordsAt([start - 1]))[0]?.recordedAt ?? 0;
  }

  /** Keys of the jobs that were seen. */
  get jobs(): ReadonlySet<string> {
    return this.#jobs.keys();
  }

  /** So many records are missing and told of: each explains a jump of its tenant and a break in the line of its job. */
  expectGaps(count: number): void {
    this.#jumps += count;
    this.#breaks += count;
  }

  /** Notes what is wrong with the record. Returns the leaf hash that the record's own fields give. */
  check(record: AuditRecord): Uint8Array {
    try {
      const found = leafHash(record);
      if (sameHash(found, record.leafHash)) this.#checkAuthor(record);
      else this.#note('leaf', record, wrongLeaf);
      this.#checkPayload(record);
      this.#checkColumns(record);
      this.#checkPlace(record);
      this.#checkChain(record, found);
      this.#checkSignature(record);
      return found;
    } catch (error) {
      // A damaged row can hold values of any type; then it is no record at all.
      this.#note('unreadable', record, `it is no record: ${messageOf(error)}`);
      return emptyRoot;
    }
  }

  #checkAuthor(record: AuditRecord): void {
    const fault = authorFault(record.subject, record.signer);
    if (fault !== null) this.#note('signature', record, fault);
  }

  #checkPayload(record: AuditRecord): void {
    const { payload, payloadSalt } = record;
    if (payload === null) {
      this.erased += 1;
      if (payloadSalt.length > 0)
        this.#note('payload', record, 'its payload is gone and the salt is not: erasure takes both');
    } else if (!isPayloadOf(record, payloadSalt, payload)) {
      this.#note('payload', record, 'its payload and salt do not give its digest');
    }
  }

  #checkColumns(record: AuditRecord): void {
    const { tenant, jobId } = jobOfAnySubject(record.subject);
    if (record.tenant !== tenant || record.jobId !== jobId || record.kind !== kindOf(record.subject))
      this.#note(
        'columns',
        record,
        `it stands under ${record.kind} of ${record.tenant}.${record.jobId} and is ${record.subject}`,
      );
  }

  #checkPlace(record: AuditRecord): void {
    const { tenant, tenantSequence, recordedAt } = record;
    const expected = this.#tenants.get(tenant) ?? 0;
    const jump = tenantSequence - expected;
    if (jump > 0 && jump <= this.#jumps) this.#jumps -= jump;
    else if (jump !== 0)
      this.#note(
        'order',
        record,
        `it is number ${tenantSequence} of tenant ${tenant}, where ${expected} is next`,
      );
    this.#tenants.set(tenant, tenantSequence + 1);
    if (recordedAt < this.#lastRecordedAt)
      this.#note(
        'time',
        record,
        `it is of ${recordedAt} µs, the record in front of it of ${this.#lastRecordedAt} µs`,
      );
    this.#lastRecordedAt = recordedAt;
  }

  #checkChain(record: AuditRecord, leafHash: Uint8Array): void {
    const { previousLeafHash, jobId } = record;
    const ofJob = hasJob(record);
    const last = ofJob ? this.#jobs.get(record) : null;
    if (!sameHash(previousLeafHash, last ?? nothing) && !this.#followsDoubtful(record)) {
      if (this.#breaks > 0) this.#breaks -= 1;
      else this.#note('chain', record, `it does not follow on the event of job ${jobId} in front of it`);
    }
    if (!ofJob) return;
    if (record.leafHash.length === hashBytes) this.#jobs.set(record, record.leafHash);
    if (!sameHash(leafHash, record.leafHash)) this.#doubtful.set(jobKey(record), leafHash);
    else if (this.#doubtful.size > 0) this.#doubtful.delete(jobKey(record));
  }

  #followsDoubtful(record: AuditRecord): boolean {
    const other = this.#doubtful.get(jobKey(record));
    return other !== undefined && sameHash(record.previousLeafHash, other);
  }

  #checkSignature(record: AuditRecord): void {
    const { payload, signature, signer, subject } = record;
    // What tenants publish is signed by nobody; whose word it is recorded as is checked above.
    if (this.#keyring === null || payload === null || isSubmission(subject)) return;
    const fault =
      signature === null
        ? `it has no signature of ${signer}`
        : signatureFault({ ...record, payload, signature }, this.#keyring);
    if (fault === null) this.validSignatures += 1;
    else this.#note('signature', record, fault);
  }

  #note(kind: Parameters<Findings['add']>[0], record: AuditRecord, fault: string): void {
    this.#findings.add(kind, record.sequence, `ledger sequence ${record.sequence}: ${fault}`);
  }
}

const page = { records: 256, bytes: 1024 * 1024 };

/** Looks back from the first record that is verified; further where records in between are missing. */
async function nextOfTenant(reader: LedgerReader, first: AuditRecord, start: number): Promise<number> {
  const { tenant, tenantSequence } = first;
  for (let back = 2; ; back *= 8) {
    const after = Math.max(-1, tenantSequence - back);
    const last = await lastBefore(start, after, (from) => reader.recordsOfTenant(tenant, from, page));
    if (last !== null) return last.tenantSequence + 1;
    if (after === -1) return 0;
  }
}

/** Of the records that `read` gives in order after a number of their tenant: the last one in front of `start`. */
async function lastBefore(
  start: number,
  after: number,
  read: (after: number) => Promise<AuditRecord[]>,
): Promise<AuditRecord | null> {
  let last: AuditRecord | null = null;
  for (let from = after; ; ) {
    const records = await read(from);
    last = records.findLast(({ sequence }) => sequence < start) ?? last;
    const end = records.at(-1);
    if (end === undefined || end.sequence >= start) return last;
    from = end.tenantSequence;
  }
}
