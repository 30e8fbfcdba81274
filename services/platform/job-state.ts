/**
 * The state of each job, one KV entry, changed by compare-and-set only: open → claimed → started → ended, never back.
 * The entry of an ended job holds the bytes of its terminal event: whoever wins the compare-and-set has decided the
 * outcome, and everybody after that publishes those same bytes.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import type { Clock } from './clock.ts';
import { OperationalError } from './errors.ts';
import type { OutgoingEvent, Publisher } from './events.ts';
import { publishEvent, signed } from './events.ts';
import { countEnded } from './metrics.ts';
import type { Bus } from './nats/bus.ts';
import type { KvBucket, KvValue } from './nats/kv.ts';
import type { JobRef, Route, TerminalKind } from './topology.ts';
import { kvKey, mayBeSaidBy, parseJobSubject, terminalKinds } from './topology.ts';

const terminalShape = z.object({
  subject: z.string(),
  id: z.string(),
  /** Base64; null when the ledger has the event, and nobody need say it again. */
  data: z.string().nullable(),
  cause: z.object({ stream: z.string(), sequence: z.number() }),
  traceparent: z.string().nullable(),
  signature: z.string(),
});

const entryShape = z.object({
  state: z.enum(['open', 'claimed', 'started', 'ended']),
  tenant: z.string(),
  jobId: z.string(),
  /** Of the one submission that made this entry: any other of the same job id is a duplicate. */
  submissionSequence: z.number(),
  traceparent: z.string().nullable(),
  /** The job must have started by then, microseconds since 1970. */
  deadline: z.number(),
  maxAttempts: z.number(),
  runtime: z.string().nullable(),
  deviceClass: z.string().nullable(),
  /** 0 before the first start. */
  attempt: z.number(),
  executor: z.string().nullable(),
  /** Most jobs of its tenant that may be with the executors at one time; null is no limit. */
  concurrency: z.number().nullable().default(null),
  /** Sequence in JOBS of its job.verified, when it had to wait for other jobs of its tenant. */
  held: z.number().nullable().default(null),
  /** Counts the renewals of the lease, so that each makes a new revision. */
  beat: z.number(),
  cancel: z.object({ requestedBy: z.string(), reason: z.string() }).nullable(),
  terminal: terminalShape.nullable(),
});

export type JobEntry = Readonly<z.infer<typeof entryShape>>;

export interface JobSnapshot {
  readonly entry: JobEntry;
  readonly revision: number;
}

export function openEntry(
  job: JobRef,
  facts: Pick<JobEntry, 'submissionSequence' | 'traceparent' | 'deadline' | 'maxAttempts'> &
    Partial<Pick<JobEntry, 'concurrency'>>,
): JobEntry {
  return {
    state: 'open',
    tenant: job.tenant,
    jobId: job.jobId,
    concurrency: null,
    ...facts,
    runtime: null,
    deviceClass: null,
    attempt: 0,
    executor: null,
    held: null,
    beat: 0,
    cancel: null,
    terminal: null,
  };
}

export const withRoute = (entry: JobEntry, route: Route): JobEntry => ({ ...entry, ...route });

/** The job's entry with its terminal event in it, signature and all: whoever publishes it publishes the same. */
export function endedEntry(
  entry: JobEntry,
  terminal: OutgoingEvent & { readonly signature: string },
): JobEntry {
  const data = Buffer.from(terminal.data).toString('base64');
  return { ...entry, state: 'ended', terminal: { ...terminal, data } };
}

/** The terminal event that an ended entry holds; null also for one that is settled. */
export function terminalOf(entry: JobEntry): OutgoingEvent | null {
  const { terminal } = entry;
  return terminal?.data == null ? null : { ...terminal, data: Buffer.from(terminal.data, 'base64') };
}

/** The entry without its event, once the ledger has that: only who and how remains, so that the id is not used again. */
export function settledEntry(entry: JobEntry): JobEntry {
  return entry.terminal === null ? entry : { ...entry, terminal: { ...entry.terminal, data: null } };
}

/**
 * Says the terminal event of an ended job again; false when the job has not ended. What this service may not say, such as
 * the executor's word by the verifier, the router sees to: the server would refuse it here, again and again.
 */
export async function republish(bus: Publisher, entry: JobEntry): Promise<boolean> {
  const terminal = terminalOf(entry);
  const service = bus.identity?.service ?? null;
  if (terminal !== null && (service === null || mayBeSaidBy(terminal.subject, service)))
    await publishEvent(bus, terminal);
  return entry.state === 'ended';
}

/** How an ended entry ended, or null. */
export function terminalKindOf(entry: JobEntry): TerminalKind | null {
  const kind = parseJobSubject(entry.terminal?.subject ?? '')?.kind;
  return terminalKinds.find((k) => k === kind) ?? null;
}

export class JobStates {
  readonly #bucket: KvBucket;

  constructor(bucket: KvBucket) {
    this.#bucket = bucket;
  }

  static async bind(bus: Bus): Promise<JobStates> {
    return new JobStates(await bus.kv('jobs'));
  }

  async read(job: JobRef): Promise<JobSnapshot | null> {
    const value = await this.#bucket.get(kvKey(job));
    return value === null ? null : parseSnapshot(value);
  }

  /** The new snapshot, or null when the job has an entry already. */
  async create(entry: JobEntry): Promise<JobSnapshot | null> {
    const revision = await this.#bucket.create(kvKey(entry), entryBytes(entry));
    return revision === null ? null : { entry, revision };
  }

  /** The new snapshot, or null when somebody else was first. */
  async replace(from: JobSnapshot, entry: JobEntry): Promise<JobSnapshot | null> {
    const revision = await this.#bucket.update(kvKey(entry), entryBytes(entry), from.revision);
    return revision === null ? null : { entry, revision };
  }

  /**
   * Applies `next` by compare-and-set, again on the newest entry when somebody else was first, until it is in or
   * `next` says null (nothing to do any more). Returns the newest snapshot and whether this call changed it.
   */
  async change(
    job: JobRef,
    next: (entry: JobEntry) => JobEntry | null,
  ): Promise<{ snapshot: JobSnapshot; changed: boolean }> {
    for (let tries = 0; tries < 50; tries++) {
      const snapshot = await this.read(job);
      if (snapshot === null)
        throw new OperationalError('NO_SUCH_JOB', `job ${kvKey(job)} has no state (yet)`);
      const entry = next(snapshot.entry);
      if (entry === null) return { snapshot, changed: false };
      const replaced = await this.replace(snapshot, entry);
      if (replaced !== null) return { snapshot: replaced, changed: true };
      await delay(5 * tries);
    }
    throw new OperationalError('CONTENTION', `the state of job ${kvKey(job)} changes too fast`);
  }

  /**
   * Calls `onChange` with every job as it stands and as it changes; null for one that is removed. Resolves
   * when all that there are have come; returns its stop. `onReset` tells that all states were deleted.
   */
  watch(
    onChange: (key: string, snapshot: JobSnapshot | null) => void,
    onReset: () => void = () => undefined,
  ): Promise<() => void> {
    const onValue = (key: string, value: KvValue | null) =>
      onChange(key, value === null ? null : parsedOrNull(value));
    return this.#bucket.watch(onValue, onReset);
  }
}

/**
 * Ends a job: the first to get its terminal event into KV has decided; that winner's bytes are published, by whoever
 * comes here. `may` names the states from which this caller may end it. Returns the winner's id, and whether it is
 * ours; null when the job is in another state and has not ended.
 */
export async function endJob(
  bus: Bus,
  states: JobStates,
  job: JobRef,
  terminal: OutgoingEvent,
  may: (entry: JobEntry) => boolean,
): Promise<{ winnerId: string; ours: boolean } | null> {
  const ours = signed(bus, terminal);
  const { snapshot, changed } = await states.change(job, (entry) =>
    entry.state !== 'ended' && may(entry) ? endedEntry(entry, ours) : null,
  );
  if (changed) countEnded(terminal);
  if (!(await republish(bus, snapshot.entry))) return null;
  const winnerId = snapshot.entry.terminal?.id ?? '';
  return { winnerId, ours: changed || winnerId === terminal.id };
}

/** Watches how long an entry's revision has stood still, on this observer's own monotonic clock. */
export class LeaseObserver {
  readonly #clock: Clock;
  readonly #seen = new Map<string, { revision: number; sinceMs: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Milliseconds for which `snapshot` has been seen unchanged; 0 at first sight. */
  unchangedMs(snapshot: JobSnapshot): number {
    const key = kvKey(snapshot.entry);
    const known = this.#seen.get(key);
    if (known?.revision === snapshot.revision) return this.#clock.monotonicMs() - known.sinceMs;
    this.#seen.set(key, { revision: snapshot.revision, sinceMs: this.#clock.monotonicMs() });
    return 0;
  }

  forget(key: string): void {
    this.#seen.delete(key);
  }
}

function entryBytes(entry: JobEntry): Uint8Array {
  return Buffer.from(JSON.stringify(entry));
}

/** An entry that nobody can read must not end the watch of all others. */
function parsedOrNull(value: KvValue): JobSnapshot | null {
  try {
    return parseSnapshot(value);
  } catch {
    return null;
  }
}

function parseSnapshot(value: KvValue): JobSnapshot {
  const entry = entryShape.parse(JSON.parse(Buffer.from(value.value).toString('utf8')));
  return { entry, revision: value.revision };
}
