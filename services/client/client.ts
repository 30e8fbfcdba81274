/** A submitter's view of Sandbus: submit, follow, cancel, read. Nothing here needs more than a tenant may do. */
import { userInfo } from 'node:os';
import { encode } from '../platform/codec.ts';
import { OperationalError, UsageError } from '../platform/errors.ts';
import { Bus } from '../platform/nats/bus.ts';
import { isJobId, isTenant, subjects, tenantRule } from '../platform/topology.ts';
import type {
  CheckpointAnswer,
  Entry,
  JobQuery,
  JobSummary,
  PathPage,
  PathQuery,
  SpanRecord,
  Standing,
} from './audit-read.ts';
import { AuditReader } from './audit-read.ts';
import type { ContentInput } from './content.ts';
import { openContent } from './content.ts';
import type { DeadLetter, Replayed } from './dead-letters.ts';
import { deadLetterIn, replay, submissionIn } from './dead-letters.ts';
import { downloadContent } from './download.ts';
import { followLogs, readLogs } from './follow-logs.ts';
import { uuidV7 } from './ids.ts';
import type { LogItem } from './logs.ts';
import type { RecordsOptions } from './records.ts';
import { readRecords } from './records.ts';
import type { JobResult } from './result.ts';
import { faultOf, resultOf } from './result.ts';
import type { SubmitRequest, Submitted } from './submission.ts';
import { submitJob } from './submission.ts';
import type { OnProgress } from './upload.ts';
import { uploadContent } from './upload.ts';
import type { OnWaiting } from './waiting.ts';

export interface ConnectOptions {
  /** nats://127.0.0.1:4222 unless set. */
  readonly url?: string;
  /** Path of a NATS credentials file; none unless set. */
  readonly credentials?: string | null;
  /** `default` unless set. */
  readonly tenant?: string;
  /** Who asks, as the ledger records it for cancellations; the user of this process unless set. */
  readonly requestedBy?: string;
  /** How long a first connection is tried, milliseconds; 5000 unless set. */
  readonly timeoutMs?: number;
  /** Told when the audit service keeps a reader waiting for some seconds, and again when the reason is another one. */
  readonly onWaiting?: OnWaiting;
}

/**
 * Connects. Throws OperationalError NATS_UNREACHABLE, NATS_REFUSED. Afterwards the connection mends itself, unless its
 * credentials are taken away: then everything throws NATS_REFUSED.
 */
export async function connect(options: ConnectOptions = {}): Promise<SandbusClient> {
  const tenant = options.tenant ?? 'default';
  if (!isTenant(tenant)) throw new UsageError(`tenant ${tenant}: use ${tenantRule}`);
  const bus = await Bus.connect({
    url: options.url ?? 'nats://127.0.0.1:4222',
    credentials: options.credentials ?? null,
    name: 'sandbus-client',
    timeoutMs: options.timeoutMs ?? 5000,
    endsWhenRefused: true,
  });
  return new SandbusClient(bus, tenant, options.requestedBy ?? userName(), options.onWaiting);
}

export class SandbusClient {
  readonly tenant: string;
  readonly #bus: Bus;
  readonly #reader: AuditReader;
  readonly #requestedBy: string;
  readonly #closing = new AbortController();

  constructor(bus: Bus, tenant: string, requestedBy: string, onWaiting?: OnWaiting) {
    this.tenant = tenant;
    this.#bus = bus;
    this.#reader = new AuditReader(bus, tenant, onWaiting);
    this.#requestedBy = requestedBy;
  }

  /**
   * Submits a job and returns as soon as the bus has it for good. Throws OperationalError BUS_FULL (try again later),
   * TOO_LARGE, NO_SERVICE (an upload, and no verifier runs), and UsageError for a request that makes no sense.
   */
  submit(request: SubmitRequest): Promise<Submitted> {
    return submitJob(this.#bus, this.tenant, request);
  }

  /** The ledger's records, in order, each once; then those that are still to come, unless `follow` is false. */
  records(options: RecordsOptions = {}): AsyncGenerator<Entry, void> {
    if (options.jobId !== undefined) checkJobId(options.jobId);
    const signals = [this.#closing.signal, ...(options.signal === undefined ? [] : [options.signal])];
    return readRecords(this.#bus, this.#reader, this.tenant, {
      ...options,
      signal: AbortSignal.any(signals),
    });
  }

  /** Waits until the job has ended. Throws ABORTED, and the reason when its submission could not be read. */
  async wait(jobId: string, options: { readonly signal?: AbortSignal | undefined } = {}): Promise<JobResult> {
    for await (const entry of this.records({ jobId, signal: options.signal })) {
      const result = resultOf(entry);
      if (result !== null) return result;
      const fault = faultOf(entry);
      if (fault !== null) throw fault;
    }
    throw new OperationalError('ABORTED', `no longer waiting for job ${jobId}`);
  }

  /** How the job ended, or null: it has not, or there is no such job. */
  async result(jobId: string): Promise<JobResult | null> {
    for await (const entry of this.records({ jobId, follow: false })) {
      const result = resultOf(entry);
      if (result !== null) return result;
    }
    return null;
  }

  /** What the job has written, exactly; with `follow` also what it still writes, until it ends. */
  async *logs(jobId: string, options: { readonly follow?: boolean } = {}): AsyncGenerator<LogItem, void> {
    checkJobId(jobId);
    if (options.follow !== true) return yield* readLogs(this.#reader, jobId, await this.result(jobId));
    const enough = new AbortController();
    const ended = this.wait(jobId, { signal: enough.signal });
    ended.catch(() => undefined);
    try {
      yield* followLogs(this.#reader, jobId, ended);
    } finally {
      enough.abort();
    }
  }

  /** Asks for the job to end. What comes of it, its terminal event tells: it may be about to end anyway. */
  async cancel(jobId: string, reason: string): Promise<void> {
    const job = { tenant: this.tenant, jobId: checkJobId(jobId) };
    const requestedAt = Date.now() * 1000;
    const bytes = encode('JobCancelRequested', {
      ...job,
      requestedAt,
      requestedBy: this.#requestedBy,
      reason,
    });
    await this.#bus.publish(subjects.job('cancel-requested', job), bytes);
  }

  /** Messages of the tenant that no service could handle, oldest first. */
  async *deadLetters(): AsyncGenerator<DeadLetter, void> {
    for await (const entry of this.records({ follow: false })) {
      const letter = deadLetterIn(entry);
      if (letter !== null) yield letter;
    }
  }

  /** The dead letter in the record of this sequence, or null when that is none. */
  async deadLetter(sequence: number): Promise<DeadLetter | null> {
    for await (const entry of this.records({ after: sequence - 1, follow: false }))
      return entry.record.tenantSequence === sequence ? deadLetterIn(entry) : null;
    return null;
  }

  /** Sends again what is in a dead letter; a submission gets a new job id. Throws UsageError when it is neither. */
  async replay(deadLetter: DeadLetter): Promise<Replayed> {
    const { jobId } = deadLetter.letter;
    let submission: Uint8Array | null = null;
    if (isJobId(jobId))
      for await (const entry of this.records({ jobId, follow: false })) submission ??= submissionIn(entry);
    return replay(this.#bus, deadLetter, submission);
  }

  /** Jobs of the tenant, newest first; a page unless it is asked for more. */
  async jobs(options: JobQuery = {}): Promise<readonly JobSummary[]> {
    return (await this.#reader.jobs(options)).jobs;
  }

  /** All jobs that the query finds, newest first, page by page. */
  async *allJobs(query: JobQuery = {}): AsyncGenerator<JobSummary, void> {
    for (let before = query.before, more = true; more; ) {
      const page = await this.#reader.jobs({ ...query, ...(before === undefined ? {} : { before }) });
      yield* page.jobs;
      before = page.jobs.at(-1)?.position ?? before;
      more = page.more && page.jobs.length > 0;
    }
  }

  /** One job, or null when the ledger does not know it (yet). */
  async job(jobId: string): Promise<JobSummary | null> {
    const { jobs } = await this.#reader.jobs({ jobId: checkJobId(jobId) });
    return jobs[0] ?? null;
  }

  /** Which checkpoint covers the record of this ledger sequence. */
  standing(sequence: number): Promise<Standing> {
    return this.#reader.standing(sequence);
  }

  /** The tenant sequence after which the records of this time begin, for `records({ after })`. */
  position(since: Date): Promise<number> {
    return this.#reader.position(since.getTime());
  }

  /** Spans of the job's trace that have been stored; services store theirs a moment after they end. */
  spans(jobId: string): Promise<SpanRecord[]> {
    return this.#reader.spans(checkJobId(jobId));
  }

  /**
   * What proves where the job's records stand: pages of paths to one checkpoint. Throws NOT_SIGNED_YET within a second of
   * its last event, UNAVAILABLE.
   */
  paths(query: PathQuery): Promise<PathPage> {
    checkJobId(query.jobId);
    return this.#reader.paths(query);
  }

  /** The ledger's newest checkpoint, and the proof that it goes on from a tree of `since` records. */
  checkpoint(since?: number): Promise<CheckpointAnswer> {
    return this.#reader.checkpoint(since);
  }

  /** Hashes (Base64) that prove that the ledger of `newer` records goes on from the one of `older`. Throws NOT_FOUND. */
  consistency(older: number, newer: number): Promise<readonly string[]> {
    return this.#reader.consistency(older, newer);
  }

  /** The bytes of an output or artifact of one of the tenant's jobs. Throws at the end if they are not those. */
  download(sha256: string): AsyncGenerator<Uint8Array, void> {
    return downloadContent(this.#bus, this.tenant, sha256);
  }

  /** Uploads content ahead of a submission, which then does not send it again. Returns its SHA-256. */
  async upload(content: ContentInput, onProgress?: OnProgress): Promise<string> {
    const source = await openContent(content);
    try {
      await uploadContent(this.#bus, this.tenant, source, onProgress);
      return source.sha256;
    } finally {
      await source.close();
    }
  }

  /** Null when the bus takes submissions of the tenant, else why not. Submits nothing. */
  busRefusal(): Promise<string | null> {
    return this.#bus.refusal(subjects.job('submitted', { tenant: this.tenant, jobId: uuidV7() }));
  }

  /** Why the NATS server is not to be used as it is; null when there is no reason. */
  get serverFault(): string | null {
    return this.#bus.serverFault;
  }

  /** Version of the NATS server. */
  get serverVersion(): string {
    return this.#bus.serverVersion;
  }

  /** Ends whatever still reads, and the connection. */
  close(): Promise<void> {
    this.#closing.abort();
    return this.#bus.close();
  }
}

function checkJobId(jobId: string): string {
  if (!isJobId(jobId)) throw new UsageError(`job id ${jobId}: must be a UUIDv7 in lower case`);
  return jobId;
}

/** The user may have no entry in the password file, as in a container. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return 'unknown';
  }
}
