/**
 * The ledger: events in, each once, in one transaction with everything that follows from them (the job's row, what may
 * leave the bus). Knows no bus.
 *
 * A message is known by its place in its stream, an event by its id. The same message again is a redelivery and changes
 * nothing; another message with the same event is a repetition and is noted as one; another message in the same place
 * means that the stream was made anew, so places count from then on in a new epoch.
 */
import type { DatabaseSync } from 'node:sqlite';
import { sealed } from '../ledger/tlog/leaf.ts';
import type { AuditRecord } from '../platform/codec.ts';
import { badSignature } from '../platform/events.ts';
import type { StreamMessage } from '../platform/nats/bus.ts';
import type { Cause } from '../platform/topology.ts';
import { eventId, jobOfAnySubject, serviceNames } from '../platform/topology.ts';
import { inTransaction, reading } from './database.ts';
import { consumerOf, DeletionStore } from './deletion-store.ts';
import { JobStore } from './job-store.ts';
import type { MessageFacts } from './message-facts.ts';
import { factsOf, hasJob } from './message-facts.ts';
import type { JobRow } from './projection.ts';
import { afterRecord, deadLetterReason } from './projection.ts';
import type { Original } from './record-store.ts';
import { RecordStore } from './record-store.ts';

export class Ledger {
  readonly records: RecordStore;
  readonly jobs: JobStore;
  readonly deletions: DeletionStore;
  readonly #database: DatabaseSync;

  constructor(database: DatabaseSync) {
    this.#database = database;
    this.records = new RecordStore(database);
    this.jobs = new JobStore(database);
    this.deletions = new DeletionStore(database);
  }

  /** Commits the messages in this order; returns the records that are new. All are on disk when it returns. */
  append(messages: readonly StreamMessage[], nowMicros: number): AuditRecord[] {
    return inTransaction(this.#database, () => {
      const recordedAt = Math.max(nowMicros, this.records.lastRecordedAt());
      return messages.map((message) => this.#add(message, recordedAt)).filter((record) => record !== null);
    });
  }

  /** True when the message of that place is in the ledger. */
  has(message: Cause): boolean {
    return reading(() => this.records.holds(message, this.records.epoch(message.stream)));
  }

  /**
   * For a message that is still on the bus: notes again that it may leave, if it may. (A server that is killed forgets
   * deletions that it has confirmed.) Returns whether it may.
   */
  releaseAgain(message: StreamMessage): boolean {
    return inTransaction(this.#database, () => {
      const known = this.#known(message, this.records.epoch(message.stream));
      if (known === null || known.subject !== message.subject || !sameBytes(known.payload, message.data))
        return false;
      const facts = factsOf(message);
      this.#release(message, facts, hasJob(facts) ? this.jobs.read(facts) : null);
      if (this.#hasDeadLetter(message)) this.deletions.add(message, null);
      return this.deletions.has(message);
    });
  }

  #hasDeadLetter(message: StreamMessage): boolean {
    const job = jobOfAnySubject(message.subject);
    return serviceNames.some(
      (service) => this.records.ofEvent(eventId(service, 'dead-lettered', message, job)) !== null,
    );
  }

  #add(message: StreamMessage, recordedAt: number): AuditRecord | null {
    let epoch = this.records.epoch(message.stream);
    const known = this.#known(message, epoch);
    if (known !== null) {
      if (known.subject === message.subject && sameBytes(known.payload, message.data)) return null;
      epoch = this.records.raiseEpoch(message.stream);
      this.deletions.forgetStream(message.stream);
    }
    const facts = factsOf(message);
    const sameId = this.records.ofEvent(facts.eventId);
    if (sameId !== null && facts.idIsGiven && sameId.subject === message.subject) {
      this.#addRepetition(message, epoch, facts, sameId);
      return null;
    }
    const eventId =
      sameId === null ? facts.eventId : `${facts.eventId}~${message.stream}.${epoch}:${message.sequence}`;
    return this.#addRecord(message, epoch, { ...facts, eventId }, recordedAt);
  }

  #known(message: Cause, epoch: number): Original | null {
    return this.records.ofMessage(message, epoch) ?? this.records.duplicateOf(message, epoch);
  }

  #addRecord(message: StreamMessage, epoch: number, facts: MessageFacts, recordedAt: number): AuditRecord {
    const job = hasJob(facts) ? this.jobs.read(facts) : null;
    const { cause: _cause, idIsGiven: _idIsGiven, ...described } = facts;
    const record = sealed(
      {
        ...described,
        sequence: this.records.size(),
        tenantSequence: this.records.nextTenantSequence(facts.tenant),
        recordedAt,
        subject: message.subject,
        stream: message.stream,
        streamSequence: message.sequence,
        previousLeafHash: job?.lastLeafHash ?? new Uint8Array(),
      },
      message.data,
    );
    this.records.insert(record, epoch);
    const row = hasJob(facts) ? this.#updateJob(job, record) : null;
    this.#release(message, facts, row);
    return record;
  }

  #updateJob(before: JobRow | null, record: AuditRecord): JobRow {
    const after = afterRecord(before, record);
    // The trace id is the submitter's word. Who names the trace of another tenant does not get to read it.
    const foreign =
      before?.traceId == null &&
      after.traceId !== null &&
      this.jobs.isForeignTrace(after.traceId, after.tenant);
    const row = foreign ? { ...after, traceId: null } : after;
    this.jobs.write(row);
    if (before?.terminalSequence == null && row.terminalSequence !== null) this.deletions.addJob(row);
    return row;
  }

  #addRepetition(message: StreamMessage, epoch: number, facts: MessageFacts, original: AuditRecord): void {
    const payload = sameBytes(original.payload, message.data) ? null : message.data;
    this.records.insertDuplicate(message, epoch, original.sequence, payload);
    this.#release(message, facts, hasJob(facts) ? this.jobs.read(facts) : null);
  }

  /** Notes what may leave the bus now that `message` is committed. */
  #release(message: StreamMessage, facts: MessageFacts, job: JobRow | null): void {
    if (facts.kind === 'dead-lettered') {
      this.deletions.add(message, null);
      // Committed before this one or no event at all, and kept whole in the dead letter: nobody needs it any more.
      const kept = facts.cause !== null && (this.has(facts.cause) || isOfForged(message, facts));
      if (kept && facts.cause !== null) this.deletions.add(facts.cause, null);
      return;
    }
    const nobodysJob = job === null;
    const late = job?.terminalSequence != null;
    // A cancel for a job that was never submitted has no end to wait for.
    const pointless = facts.kind === 'cancel-requested' && job?.state == null;
    if (nobodysJob || late || pointless)
      this.deletions.add(message, consumerOf(message.stream, message.subject));
  }
}

/** A dead letter of our own about what nobody may say. It is never committed as an event. */
function isOfForged(message: StreamMessage, facts: MessageFacts): boolean {
  return facts.signer === 'audit' && deadLetterReason(message.data) === badSignature;
}

/** An erased payload can be compared no more and counts as the same. */
function sameBytes(recorded: Uint8Array | null, data: Uint8Array): boolean {
  return recorded === null || Buffer.compare(recorded, data) === 0;
}
