/**
 * Records as events of the Open Cybersecurity Schema Framework 1.8.0, class 1007 Process Activity with the profiles host
 * and security_control (schema.ocsf.io/1.8.0/classes/process_activity). The published class does not take the profile
 * `trace`: the trace id is the correlation uid of the metadata, and the whole trace object of the profile stands in
 * `unmapped`, beside what the class has no place for.
 */
import type { Entry, JobFinished, JobRejected, SandbusClient } from '../client/index.ts';
import type { JobRecord } from './job-record.ts';
import { recordOf } from './job-record.ts';
import { explain } from './results.ts';
import { version } from './version.ts';

export const ocsfVersion = '1.8.0';
const classUid = 1007;
const activities = { launch: [1, 'Launch'], terminate: [2, 'Terminate'] } as const;
const severities = { informational: 1, low: 2, medium: 3, high: 4 } as const;
const success = { status_id: 1, status: 'Success' } as const;
const failure = { status_id: 2, status: 'Failure' } as const;
const allowed = { action_id: 1, action: 'Allowed', disposition_id: 1, disposition: 'Allowed' } as const;
const blocked = { action_id: 2, action: 'Denied', disposition_id: 2, disposition: 'Blocked' } as const;
const observed = { action_id: 3, action: 'Observed', disposition_id: 17, disposition: 'Logged' } as const;
const sha256 = (value: string) => ({ algorithm_id: 3, algorithm: 'SHA-256', value });

/** Jobs of which everything is kept at hand. */
const mostOpen = 64;

/** Refusals behind which somebody may stand who means harm. */
const alarming = new Set([
  'UNSIGNED',
  'BAD_SIGNATURE',
  'UNKNOWN_KEY',
  'REVOKED',
  'DIGEST_MISMATCH',
  'NAME_MISMATCH',
]);

export type OcsfEvent = Readonly<Record<string, unknown>>;

/** Makes events of records as they come; remembers of each open job what its end must say again. */
export class OcsfMapper {
  readonly #client: Pick<SandbusClient, 'records' | 'tenant'>;
  readonly #open = new Map<string, Entry[]>();

  constructor(client: Pick<SandbusClient, 'records' | 'tenant'>) {
    this.#client = client;
  }

  /** One event for a start, an end or a refusal; none for the steps between. */
  async eventsOf(entry: Entry): Promise<OcsfEvent[]> {
    const { jobId } = entry.record;
    const seen = [...(this.#open.get(jobId) ?? []), entry];
    if (entry.event !== null && isReported(entry)) {
      const complete = seen[0]?.record.kind === 'submitted' ? seen : await this.#before(entry);
      const event = eventOf(entry, recordOf(jobId, entry.record.tenant, complete));
      if (isEnd(entry)) this.#open.delete(jobId);
      else this.#remember(jobId, complete);
      return event === null ? [] : [event];
    }
    this.#remember(jobId, seen);
    return [];
  }

  /** What is forgotten is read again at the job's end: events may carry a plugin each, and thousands of jobs be open. */
  #remember(jobId: string, entries: Entry[]): void {
    this.#open.delete(jobId);
    this.#open.set(jobId, entries);
    const [oldest] = this.#open.keys();
    if (this.#open.size > mostOpen && oldest !== undefined) this.#open.delete(oldest);
  }

  /** The export began in the middle of this job, or it was forgotten. */
  async #before(entry: Entry): Promise<Entry[]> {
    const entries: Entry[] = [];
    for await (const earlier of this.#client.records({ jobId: entry.record.jobId, follow: false })) {
      entries.push(earlier);
      if (earlier.record.sequence >= entry.record.sequence) break;
    }
    return entries;
  }
}

const isEnd = ({ record: { kind } }: Entry): boolean =>
  /^(finished|rejected|cancelled|dead-lettered)$/.test(kind);
const isReported = ({ record: { kind } }: Entry): boolean =>
  /^(started|finished|rejected|cancelled)$/.test(kind);

function eventOf(entry: Entry, job: JobRecord): OcsfEvent | null {
  const { event } = entry;
  switch (event?.name) {
    case 'JobStarted':
      return {
        ...frame(entry, job, 'launch', severities.informational),
        ...success,
        ...allowed,
        device: device(event.value.executor),
        process: { ...processOf(job), created_time: millis(event.value.startedAt) },
      };
    case 'JobFinished':
      return finishedEvent(entry, job, event.value);
    case 'JobRejected':
      return rejectedEvent(entry, job, event.value);
    case 'JobCancelled':
      return {
        ...frame(entry, job, 'launch', severities.informational),
        ...failure,
        ...observed,
        status_code: 'CANCELLED',
        status_detail: `cancelled by ${event.value.requestedBy}: ${event.value.reason}`,
        device: device(entry.record.signer),
        process: processOf(job),
      };
    default:
      return null;
  }
}

function finishedEvent(entry: Entry, job: JobRecord, event: JobFinished): OcsfEvent {
  const well = event.outcome === 'exited' && event.exitCode === 0;
  const detail = job.result === null ? null : explain(job.result);
  const endedMs = millis(event.finishedAt);
  const startedMs = endedMs - Math.round(event.usage.wallMicros / 1000);
  return {
    ...frame(entry, job, 'terminate', severityOf(event)),
    ...(well ? success : failure),
    ...(event.outcome === 'syscall_denied' ? blocked : observed),
    status_code: event.outcome.replaceAll('_', '-').toUpperCase(),
    ...(detail === null ? {} : { status_detail: detail }),
    ...(event.exitCode === null ? {} : { exit_code: event.exitCode }),
    start_time: startedMs,
    end_time: endedMs,
    duration: endedMs - startedMs,
    device: device(event.executor),
    process: {
      ...processOf(job),
      created_time: startedMs,
      terminated_time: endedMs,
      sandbox: `Sandbus, filter ${event.sandbox.filterDigest}`,
      ...(event.sandbox.uid === null ? {} : { user: { uid: String(event.sandbox.uid), type_id: 1 } }),
    },
    unmapped: { ...unmapped(entry, job), ...accounts(event) },
  };
}

function severityOf({ outcome, exitCode, denials }: JobFinished): number {
  if (outcome === 'syscall_denied') return severities.high;
  if (denials.length > 0 || outcome !== 'exited') return severities.medium;
  return exitCode === 0 ? severities.informational : severities.low;
}

/** What the class has no attributes for. */
function accounts({
  outcome,
  usage,
  syscalls,
  denials,
  probes,
  executions,
  devices,
  artifacts,
}: JobFinished) {
  return { outcome, usage, syscalls, denials, probes, executions, devices, artifacts };
}

function rejectedEvent(entry: Entry, job: JobRecord, event: JobRejected): OcsfEvent {
  const severity = alarming.has(event.reason) ? severities.high : severities.medium;
  return {
    ...frame(entry, job, 'launch', severity),
    ...failure,
    ...blocked,
    status_code: event.reason,
    status_detail: event.detail,
    device: device(event.stage),
    process: processOf(job),
  };
}

/** What every event of the class has. */
function frame(
  entry: Entry,
  job: JobRecord,
  activity: keyof typeof activities,
  severityId: number,
): OcsfEvent {
  const { record } = entry;
  const [activityId, activityName] = activities[activity];
  return {
    activity_id: activityId,
    activity_name: activityName,
    category_uid: 1,
    category_name: 'System Activity',
    class_uid: classUid,
    class_name: 'Process Activity',
    type_uid: classUid * 100 + activityId,
    type_name: `Process Activity: ${activityName}`,
    severity_id: severityId,
    time: millis(record.recordedAt),
    actor: { app_name: 'Sandbus', user: { name: record.tenant, type_id: 99, type: 'Tenant' } },
    metadata: {
      version: ocsfVersion,
      profiles: ['host', 'security_control'],
      product: { name: 'Sandbus', vendor_name: 'Sandbus', version },
      uid: record.eventId,
      sequence: record.sequence,
      logged_time: millis(record.recordedAt),
      log_name: 'ledger',
      tenant_uid: record.tenant,
      correlation_uid: traceOf(record.traceparent)?.uid ?? record.jobId,
    },
    unmapped: unmapped(entry, job),
  };
}

function unmapped({ record }: Entry, { verified, routed }: JobRecord) {
  const trace = traceOf(record.traceparent);
  return {
    job_uid: record.jobId,
    leaf_hash: Buffer.from(record.leafHash).toString('hex'),
    ...(trace === null ? {} : { trace: { uid: trace.uid }, span_uid: trace.span }),
    ...(verified === null ? {} : { key_ids: verified.keyIds }),
    ...(routed === null ? {} : { route: `${routed.runtime}.${routed.deviceClass}` }),
  };
}

function processOf({ jobId, submitted }: JobRecord) {
  if (submitted === null) return { uid: jobId };
  const { plugin, args } = submitted;
  const { sha256: digest, size } = plugin.content;
  return {
    uid: jobId,
    name: plugin.name,
    cmd_line: [plugin.name, ...args.map((arg) => JSON.stringify(arg))].join(' '),
    file: { name: plugin.name, type_id: 1, type: 'Regular File', size, hashes: [sha256(digest)] },
  };
}

/** Where it happened; the executor's name, or the service that refused it. */
const device = (name: string) => ({ name, type_id: 1, type: 'Server' });

function traceOf(traceparent: string | null): { uid: string; span: string } | null {
  const [, uid, span] = traceparent?.split('-') ?? [];
  return uid === undefined || span === undefined ? null : { uid, span };
}

const millis = (micros: number): number => Math.floor(micros / 1000);
