/**
 * What a batch of messages does to the ledger, pure: what the store knows about them goes in, all that changes comes out.
 *
 * A message is known by its place in its stream, an event by its id. The same message again is a redelivery and changes
 * nothing; another message with the same event is a repetition and is noted as one; another message in the same place
 * means that the stream was made anew, so places count from then on in a new epoch.
 */
import type { AuditRecord } from '../platform/codec.ts';
import type { StreamMessage } from '../platform/nats/bus.ts';
import type { Cause, JobRef } from '../platform/topology.ts';
import { idsIn } from '../platform/traceparent.ts';
import { isInStream, jobKey, placeKey } from './keys.ts';
import type { MessageFacts } from './message-facts.ts';
import { factsOf, hasJob } from './message-facts.ts';
import { afterRecord } from './projection.ts';
import { ofRecord, refillFault } from './refill.ts';
import { releaseOf } from './release.ts';
import type {
  BatchKeys,
  Changes,
  Deletion,
  Duplicate,
  JobRow,
  Known,
  NewRecord,
  Original,
  Subtree,
} from './store.ts';
import type { CompactRange } from './tlog/compact-range.ts';
import { sealed } from './tlog/leaf.ts';

/** A message with what it says of itself, and the keys (see keys.ts) under which it is looked for. */
export interface Described {
  readonly message: StreamMessage;
  readonly facts: MessageFacts;
  readonly place: string;
  /** Of the place of its cause. */
  readonly cause: string | null;
  readonly job: string | null;
}

export interface Plan {
  readonly changes: Changes;
  /** The tree once the changes are committed. */
  readonly tree: CompactRange;
}

export const described = (message: StreamMessage): Described => describedAs(message, factsOf(message));

export const describedAs = (message: StreamMessage, facts: MessageFacts): Described => ({
  message,
  facts,
  place: placeKey(message),
  cause: facts.cause === null ? null : placeKey(facts.cause),
  job: hasJob(facts) ? jobKey(facts) : null,
});

/** What must be known to plan these. */
export function keysOf(batch: readonly Described[]): BatchKeys {
  const jobs = new Map<string, JobRef>();
  const traceIds = new Set<string>();
  const tenants = new Set<string>();
  const causes: Cause[] = [];
  for (const { facts, job } of batch) {
    tenants.add(facts.tenant);
    // What a dead letter was made of is released with it; nobody asks for the cause of anything else.
    if (facts.cause !== null && facts.kind === 'dead-lettered') causes.push(facts.cause);
    if (job === null) continue;
    jobs.set(job, facts);
    if (facts.traceparent !== null) traceIds.add(idsIn(facts.traceparent).traceId);
  }
  return {
    places: batch.map(({ message }) => message),
    causes,
    eventIds: batch.map(({ facts }) => facts.eventId),
    jobs,
    tenants: [...tenants],
    traceIds: [...traceIds],
  };
}

/**
 * Plans records that an older database has lost, as AUDIT has kept them: they must be exactly the next ones. Nothing is
 * noted for deletion: a message that is still on the bus is looked at by the sweep of audit's retention.
 * Throws RefillFault.
 */
export function planRefill(records: readonly AuditRecord[], known: Known, tree: CompactRange): Plan {
  const planner = new Planner(known, tree, 0);
  for (const record of records) planner.refill(record);
  return planner.plan();
}

/** A record of AUDIT that is not the next one of this ledger. */
export class RefillFault extends Error {
  override readonly name = 'RefillFault';
}

/** Plans the messages in this order. `tree` is that of `known.head`, and stays as it is. */
export function plan(batch: readonly Described[], known: Known, tree: CompactRange, nowMicros: number): Plan {
  const planner = new Planner(known, tree, nowMicros);
  for (const one of batch) planner.add(one);
  return planner.plan();
}

class Planner {
  readonly #known: Known;
  readonly #tree: CompactRange;
  readonly #recordedAt: number;
  readonly #records: NewRecord[] = [];
  readonly #subtrees: Subtree[] = [];
  readonly #duplicates: Duplicate[] = [];
  readonly #epochs = new Map<string, number>();
  readonly #jobs = new Map<string, JobRow>();
  readonly #deletions = new Map<string, Deletion>();
  readonly #endedJobs = new Map<string, JobRef>();
  /** What this batch itself adds to what is known. */
  readonly #atPlace = new Map<string, Original>();
  readonly #byEventId = new Map<string, Original>();
  readonly #tenantSequences = new Map<string, number>();
  readonly #traceTenants = new Map<string, Set<string>>();

  constructor(known: Known, tree: CompactRange, nowMicros: number) {
    this.#known = known;
    this.#tree = tree.clone();
    this.#recordedAt = Math.max(nowMicros, known.head.recordedAt);
  }

  plan(): Plan {
    const { size, lastLeafHash } = this.#known.head;
    const changes = {
      onto: { size, lastLeafHash },
      records: this.#records,
      subtrees: this.#subtrees,
      duplicates: this.#duplicates,
      epochs: this.#epochs,
      jobs: [...this.#jobs.values()],
      deletions: [...this.#deletions.values()],
      endedJobs: [...this.#endedJobs.values()],
    };
    return { changes, tree: this.#tree };
  }

  add(one: Described): void {
    const { message, facts } = one;
    const known = this.#originalAt(one);
    if (known !== undefined) {
      if (isSame(known, message)) return;
      this.#raiseEpoch(message.stream);
    }
    const sameId = this.#byEventId.get(facts.eventId) ?? this.#known.byEventId.get(facts.eventId);
    if (sameId !== undefined && facts.idIsGiven && sameId.subject === message.subject)
      this.#addRepetition(one, sameId);
    else this.#addRecord(sameId === undefined ? one : { ...one, facts: this.#renamed(message, facts) });
  }

  /** A used id of another event gets the place added: two events never have the same. */
  #renamed(message: StreamMessage, facts: MessageFacts): MessageFacts {
    const place = `${message.stream}.${this.#epochOf(message.stream)}:${message.sequence}`;
    return { ...facts, eventId: `${facts.eventId}~${place}` };
  }

  #epochOf(stream: string): number {
    return this.#epochs.get(stream) ?? this.#known.epochs.get(stream) ?? 0;
  }

  #originalAt({ place, message }: Described): Original | undefined {
    return (
      this.#atPlace.get(place) ?? (this.#isNew(message.stream) ? undefined : this.#known.atPlace.get(place))
    );
  }

  /** True when the message of that place is in the ledger, or will be with this batch. */
  #holds(place: Cause): boolean {
    const key = placeKey(place);
    return this.#atPlace.has(key) || (!this.#isNew(place.stream) && this.#known.held.has(key));
  }

  /** Made anew within this batch: what the store knows of its places is of another epoch. */
  #isNew(stream: string): boolean {
    return this.#epochs.has(stream);
  }

  /** The stream began again: its sequences mean other messages from now on, and the old ones are gone with it. */
  #raiseEpoch(stream: string): void {
    this.#epochs.set(stream, this.#epochOf(stream) + 1);
    for (const map of [this.#atPlace, this.#deletions])
      for (const key of map.keys()) if (isInStream(key, stream)) map.delete(key);
  }

  refill(record: AuditRecord): void {
    const one = ofRecord(record);
    const { stream } = one.message;
    const before = this.#job(one.job);
    const fault = refillFault(record, {
      sequence: this.#tree.size,
      tenantSequence: this.#takeTenantSequence(record.tenant),
      recordedAt: this.#records.at(-1)?.record.recordedAt ?? this.#known.head.recordedAt,
      previousLeafHash: before?.lastLeafHash ?? new Uint8Array(),
      isKnownEvent: this.#byEventId.has(record.eventId) || this.#known.byEventId.has(record.eventId),
    });
    if (fault !== null) throw new RefillFault(`record ${record.sequence} of AUDIT ${fault}`);
    if (this.#originalAt(one) !== undefined) this.#raiseEpoch(stream);
    this.#place(one, record);
    if (one.job !== null) this.#updateJob(one.job, before, record);
    this.#endedJobs.clear();
  }

  #addRecord(one: Described): void {
    const { message, facts } = one;
    const before = this.#job(one.job);
    const record = sealed(
      {
        sequence: this.#tree.size,
        tenant: facts.tenant,
        tenantSequence: this.#takeTenantSequence(facts.tenant),
        recordedAt: this.#recordedAt,
        jobId: facts.jobId,
        kind: facts.kind,
        subject: message.subject,
        eventId: facts.eventId,
        signer: facts.signer,
        signature: facts.signature,
        traceparent: facts.traceparent,
        stream: message.stream,
        streamSequence: message.sequence,
        previousLeafHash: before?.lastLeafHash ?? nothing,
      },
      message.data,
    );
    this.#place(one, record);
    this.#release(one, one.job === null ? null : this.#updateJob(one.job, before, record));
  }

  #place({ place }: Described, record: AuditRecord): void {
    this.#records.push({ record, epoch: this.#epochOf(record.stream) });
    this.#tree.append(record.leafHash, (level, number, hash) => this.#subtrees.push({ level, number, hash }));
    this.#atPlace.set(place, record);
    this.#byEventId.set(record.eventId, record);
  }

  #takeTenantSequence(tenant: string): number {
    const next = this.#tenantSequences.get(tenant) ?? this.#known.nextTenantSequence.get(tenant) ?? 0;
    this.#tenantSequences.set(tenant, next + 1);
    return next;
  }

  #job(key: string | null): JobRow | null {
    return key === null ? null : (this.#jobs.get(key) ?? this.#known.jobs.get(key) ?? null);
  }

  #updateJob(key: string, before: JobRow | null, record: AuditRecord): JobRow {
    const after = afterRecord(before, record);
    const row = before?.traceId == null && !this.#takeTrace(after) ? { ...after, traceId: null } : after;
    this.#jobs.set(key, row);
    if (before?.terminalSequence == null && row.terminalSequence !== null) this.#endedJobs.set(key, row);
    return row;
  }

  /** The trace id is the submitter's word. Who names the trace of another tenant does not get to read it. */
  #takeTrace({ traceId, tenant }: JobRow): boolean {
    if (traceId === null) return true;
    const users = this.#traceTenants.get(traceId) ?? new Set(this.#known.traceTenants.get(traceId));
    if ([...users].some((user) => user !== tenant)) return false;
    this.#traceTenants.set(traceId, users.add(tenant));
    return true;
  }

  #addRepetition(one: Described, original: Original): void {
    const { message, place } = one;
    const { stream, sequence } = message;
    const payload = sameBytes(original.payload, message.data) ? null : message.data;
    const epoch = this.#epochOf(stream);
    this.#duplicates.push({ stream, sequence, epoch, of: original.sequence, payload });
    this.#atPlace.set(place, { ...original, payload: payload ?? original.payload });
    this.#release(one, this.#job(one.job));
  }

  #release(one: Described, job: JobRow | null): void {
    for (const deletion of releaseOf(one, job, (cause) => this.#holds(cause))) {
      const key = placeKey(deletion);
      // A second word can only lift the wait.
      const lifted = this.#deletions.get(key)?.awaits === null;
      this.#deletions.set(key, lifted ? { ...deletion, awaits: null } : deletion);
    }
  }
}

const nothing = new Uint8Array();

export const isSame = (known: Original, message: StreamMessage): boolean =>
  known.subject === message.subject && sameBytes(known.payload, message.data);

/** An erased payload can be compared no more and counts as the same. */
function sameBytes(recorded: Uint8Array | null, data: Uint8Array): boolean {
  return recorded === null || Buffer.compare(recorded, data) === 0;
}
