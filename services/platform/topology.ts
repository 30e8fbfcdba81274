/**
 * The only list of subjects, streams, consumers and buckets. Nobody builds a subject by hand elsewhere.
 * Plain data: platform/nats/ turns it into JetStream calls, deploy/ into permissions.
 */
import type { DeviceClass, LogStream, Runtime } from '../../schemas/generated/events.ts';

export interface JobRef {
  readonly tenant: string;
  readonly jobId: string;
}

/** Kinds of job event, as they stand in `job.<kind>.<tenant>.<jobId>` and `audit.<tenant>.<jobId>.<kind>`. */
export const serviceEventKinds = [
  'verified',
  'rejected',
  'started',
  'finished',
  'cancelled',
  'superseded',
  'dead-lettered',
] as const;
export const submitterEventKinds = ['submitted', 'cancel-requested'] as const;
export type JobEventKind =
  | (typeof serviceEventKinds)[number]
  | (typeof submitterEventKinds)[number]
  | 'routed';
/** The kinds that end a job; every job gets exactly one. */
export const terminalKinds = ['rejected', 'finished', 'cancelled'] as const;
export type TerminalKind = (typeof terminalKinds)[number];

export const runtimes: readonly Runtime[] = ['native', 'python', 'node', 'ruby', 'bash'];
export const deviceClasses: readonly DeviceClass[] = ['cpu', 'gpu'];

export interface Route {
  readonly runtime: Runtime;
  readonly deviceClass: DeviceClass;
}
export const routes: readonly Route[] = runtimes.flatMap((runtime) =>
  deviceClasses.map((deviceClass) => ({ runtime, deviceClass })),
);

export const serviceNames = ['verifier', 'router', 'executor', 'audit'] as const;
export type ServiceName = (typeof serviceNames)[number];

const tenantPattern = /^[a-z0-9][a-z0-9_-]{0,62}$/;
const jobIdPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const sha256Pattern = /^[0-9a-f]{64}$/;

/** The rule of `isTenant` in words. */
export const tenantRule = '1 to 63 of a-z, 0-9, _ and -, the first a letter or digit';
/** A tenant is a token of a subject. */
export const isTenant = (text: string): boolean => tenantPattern.test(text);
/** A job id is a UUIDv7 (RFC 9562) in lower case. */
export const isJobId = (text: string): boolean => jobIdPattern.test(text);
export const isSha256 = (text: string): boolean => sha256Pattern.test(text);

/** Stands in a subject where a dead letter had no valid token. */
export const noToken = '-';

export const subjects = {
  job: (kind: Exclude<JobEventKind, 'routed'>, job: JobRef) => `job.${kind}.${job.tenant}.${job.jobId}`,
  work: (route: Route, job: JobRef) =>
    `work.${route.runtime}.${route.deviceClass}.${job.tenant}.${job.jobId}`,
  workOf: (job: JobRef) => `work.*.*.${job.tenant}.${job.jobId}`,
  log: (job: JobRef, stream: LogStream) => `log.${job.tenant}.${job.jobId}.${stream}`,
  logsOf: (job: JobRef) => `log.${job.tenant}.${job.jobId}.*`,
  trace: (service: string) => `trace.${service}`,
  audit: (job: JobRef, kind: string) => `audit.${job.tenant}.${job.jobId}.${kind}`,
  auditOf: (tenant: string, jobId = '*') => `audit.${tenant}.${jobId}.>`,
  auditCheckpoint: 'audit-checkpoint',
  upload: (tenant: string, sha256: string) => `upload.${tenant}.${sha256}`,
  download: (tenant: string, sha256: string) => `download.${tenant}.${sha256}`,
  auditRead: (tenant: string) => `audit-read.${tenant}`,
  /** What only an operator may ask. */
  auditOperate: 'audit-operate',
  /** Plain notices, never the truth: they only wake somebody who then looks into JetStream or KV. */
  wake: (route: Route) => `wake.${route.runtime}.${route.deviceClass}`,
  cancelNotice: (executor: string) => `cancel-notice.${executor}`,
} as const;

/**
 * Which services may say what: the first tokens of the subject → its authors. Signatures are checked against this, and
 * the permissions of the NATS server are made from it.
 */
export const authors: ReadonlyMap<string, readonly ServiceName[]> = new Map<string, readonly ServiceName[]>([
  ['job.verified', ['verifier']],
  ['job.rejected', ['verifier', 'router', 'executor']],
  ['job.started', ['executor']],
  // The router says it for executors that are lost, and for nothing else.
  ['job.finished', ['executor', 'router']],
  ['job.superseded', ['executor']],
  ['job.cancelled', ['router']],
  ['job.dead-lettered', serviceNames],
  ['work', ['router']],
  ['log', ['executor']],
  ['audit', ['audit']],
  ['audit-checkpoint', ['audit']],
  ...serviceNames.map((service) => [`trace.${service}`, [service]] as const),
]);

export function mayBeSaidBy(subject: string, service: ServiceName): boolean {
  const dot = subject.indexOf('.');
  const first = dot < 0 ? subject : subject.slice(0, dot);
  const next = subject.indexOf('.', dot + 1);
  const two = dot < 0 || next < 0 ? subject : subject.slice(0, next);
  return (authors.get(two) ?? authors.get(first))?.includes(service) ?? false;
}

/** Whether it is for tenants to publish. */
export const isSubmission = (subject: string): boolean =>
  submitterEventKinds.some((kind) => subject === `job.${kind}` || subject.startsWith(`job.${kind}.`));

/** What services listen to by request/reply. */
export const requestFilters = {
  upload: 'upload.*.*',
  download: 'download.*.*',
  auditRead: 'audit-read.*',
  auditOperate: 'audit-operate',
} as const;

export interface JobSubject extends JobRef {
  readonly kind: JobEventKind;
}

/** The parts of a job's subject. Tokens are returned as they stand: check them with isTenant and isJobId. */
export function parseJobSubject(subject: string): JobSubject | null {
  const tokens = subject.split('.');
  if (tokens[0] === 'work' && tokens.length === 5) return jobSubject('routed', tokens[3], tokens[4]);
  if (tokens[0] !== 'job' || tokens.length !== 4) return null;
  const kind = kindsInSubjects.get(tokens[1] ?? '');
  return kind === undefined ? null : jobSubject(kind, tokens[2], tokens[3]);
}

const kindsInSubjects: ReadonlyMap<string, JobEventKind> = new Map(
  [...serviceEventKinds, ...submitterEventKinds].map((kind) => [kind, kind] as const),
);

function jobSubject(kind: JobEventKind, tenant = '', jobId = ''): JobSubject {
  return { kind, tenant, jobId };
}

/** The job that a dead letter belongs to, with `-` for each token that is missing or malformed. */
export const jobOfAnySubject = (subject: string): JobRef => jobIn(parseJobSubject(subject));

/** The same, of a subject that is parsed already. */
export function jobIn(parsed: JobSubject | null): JobRef {
  return {
    tenant: parsed !== null && isTenant(parsed.tenant) ? parsed.tenant : noToken,
    jobId: parsed !== null && isJobId(parsed.jobId) ? parsed.jobId : noToken,
  };
}

const mebibyte = 1024 * 1024;
const hourMs = 3_600_000;

export interface StreamDefinition {
  readonly name: 'SUBMISSIONS' | 'JOBS' | 'AUDIT' | 'LOGS' | 'TRACES';
  readonly subjects: readonly string[];
  readonly retention: 'limits' | 'workqueue';
  readonly discard: 'new' | 'old';
  readonly maxBytes: number;
  readonly maxAgeMs: number;
  /** Below the server's max_payload, by this many bytes: an event must fit into a dead letter. */
  readonly headroomBytes: number;
}

export const streams: readonly StreamDefinition[] = [
  {
    name: 'SUBMISSIONS',
    subjects: submitterEventKinds.map((kind) => `job.${kind}.>`),
    retention: 'limits',
    discard: 'new',
    maxBytes: 128 * mebibyte,
    maxAgeMs: 0,
    headroomBytes: 128 * 1024,
  },
  {
    name: 'JOBS',
    subjects: [...serviceEventKinds.map((kind) => `job.${kind}.>`), 'work.>'],
    retention: 'limits',
    discard: 'new',
    // Eight times SUBMISSIONS: room for the two events into which each waiting submission is copied, and for ends.
    maxBytes: 1024 * mebibyte,
    maxAgeMs: 0,
    headroomBytes: 64 * 1024,
  },
  {
    name: 'AUDIT',
    subjects: ['audit.>', subjects.auditCheckpoint],
    retention: 'limits',
    discard: 'old',
    maxBytes: 512 * mebibyte,
    maxAgeMs: 7 * 24 * hourMs,
    headroomBytes: 0,
  },
  {
    name: 'LOGS',
    subjects: ['log.>'],
    retention: 'limits',
    discard: 'old',
    maxBytes: 512 * mebibyte,
    maxAgeMs: 24 * hourMs,
    headroomBytes: 64 * 1024,
  },
  {
    name: 'TRACES',
    subjects: ['trace.>'],
    retention: 'workqueue',
    discard: 'old',
    maxBytes: 128 * mebibyte,
    maxAgeMs: 24 * hourMs,
    headroomBytes: 64 * 1024,
  },
];

export interface ConsumerDefinition {
  readonly stream: StreamDefinition['name'];
  readonly durable: string;
  /** One filter per consumer: nats-server 2.9 has no more. Null takes the whole stream. */
  readonly filter: string | null;
}

export const workConsumer = (route: Route): string => `work-${route.runtime}-${route.deviceClass}`;

export const consumers = {
  verifier: { stream: 'SUBMISSIONS', durable: 'verifier', filter: 'job.submitted.>' },
  routerCancels: { stream: 'SUBMISSIONS', durable: 'router-cancels', filter: 'job.cancel-requested.>' },
  router: { stream: 'JOBS', durable: 'router', filter: 'job.verified.>' },
  auditSubmissions: { stream: 'SUBMISSIONS', durable: 'audit', filter: null },
  auditJobs: { stream: 'JOBS', durable: 'audit', filter: null },
  auditTraces: { stream: 'TRACES', durable: 'audit', filter: null },
} as const satisfies Record<string, ConsumerDefinition>;

const workConsumers: readonly ConsumerDefinition[] = routes.map((route) => ({
  stream: 'JOBS',
  durable: workConsumer(route),
  filter: `work.${route.runtime}.${route.deviceClass}.>`,
}));

export const allConsumers: readonly ConsumerDefinition[] = [...Object.values(consumers), ...workConsumers];

/** What must be in the server for work to be done: names of streams, and consumers. */
export interface Needs {
  readonly streams: readonly string[];
  readonly consumers: readonly Pick<ConsumerDefinition, 'stream' | 'durable'>[];
}

export function needsOf(service: ServiceName): Needs {
  const common = ['SUBMISSIONS', 'JOBS', 'KV_jobs'];
  const { verifier, router, routerCancels, auditSubmissions, auditJobs, auditTraces } = consumers;
  switch (service) {
    case 'verifier':
      return { streams: [...common, 'KV_uploads', 'OBJ_plugins'], consumers: [verifier] };
    case 'router':
      return { streams: common, consumers: [router, routerCancels] };
    case 'executor':
      return { streams: [...common, 'LOGS', 'OBJ_plugins', 'OBJ_artifacts'], consumers: workConsumers };
    case 'audit':
      return {
        streams: [...common, 'AUDIT', 'TRACES', 'OBJ_artifacts'],
        consumers: [auditSubmissions, auditJobs, auditTraces],
      };
  }
}

/** Everything that deployment makes. */
export const wholeTopology = (): Needs => ({
  streams: [
    ...streams.map(({ name }) => name),
    ...kvBuckets.map(({ name }) => streamOfBucket(name)),
    ...objectBuckets.map(({ name }) => `OBJ_${name}`),
  ],
  consumers: allConsumers,
});

/** An unacked message is delivered again after this time; the loop says `working` every third of it. */
export const ackWaitMs = 30_000;

export const kvBuckets = [
  /** State, claim and terminal event of each job. Ended entries stay a week, so that an id cannot be used again. */
  { name: 'jobs', maxBytes: 512 * mebibyte, ttlMs: 7 * 24 * hourMs },
  { name: 'schemas', maxBytes: 8 * mebibyte, ttlMs: 0 },
  /** How far each upload has come; the parts themselves are objects. An upload left alone for a day is forgotten. */
  { name: 'uploads', maxBytes: 16 * mebibyte, ttlMs: 24 * hourMs },
  /** The highest trust store that any machine has put in force. */
  { name: 'trust', maxBytes: mebibyte, ttlMs: 0 },
] as const;
/** The stream behind a KV bucket. */
export const streamOfBucket = (bucket: (typeof kvBuckets)[number]['name']): string => `KV_${bucket}`;
/** A terminal event is never larger than this, so that it is known how much room an open job needs. */
export const terminalEventBytes = 192 * 1024;
export const kvKey = (job: JobRef): string => `${job.tenant}.${job.jobId}`;

/** `keepMs`: so long after its last use an object is kept at least; then it is collected. */
export const objectBuckets = [
  /** Plugins, inputs and standard inputs; also kept until the deadline of every job that needs them. */
  { name: 'plugins', maxBytes: 1024 * mebibyte, keepMs: 24 * hourMs },
  { name: 'artifacts', maxBytes: 512 * mebibyte, keepMs: 7 * 24 * hourMs },
] as const;
export type ObjectBucketName = (typeof objectBuckets)[number]['name'];
/** A tenant's own: what others have stored, the same bytes or not, it neither sees nor uses. */
export const objectKey = (tenant: string, sha256: string): string => `${tenant}.${sha256}`;
export const keepMsOf = (bucket: ObjectBucketName): number =>
  objectBuckets.find(({ name }) => name === bucket)?.keepMs ?? 0;

/** Chunks of an upload or download. */
export const chunkBytes = 512 * 1024;
/** Plugin, stdin and inputs that travel inside a submission, together. */
export const inlineBytes = 512 * 1024;
/** The largest upload: a plugin, a standard input, an input file. */
export const mostUploadBytes = 256 * 1024 * 1024;

/** Names of the NATS headers that carry more than the body. */
export const headerNames = {
  traceparent: 'traceparent',
  cause: 'Sandbus-Cause',
  signature: 'Sandbus-Signature',
  /** Where a signed message must not have a Nats-Msg-Id, its id stands here. */
  eventId: 'Sandbus-Event-Id',
  delegatedSpan: 'Sandbus-Delegated-Span',
  ledgerSequence: 'Sandbus-Ledger-Sequence',
  offset: 'Sandbus-Offset',
  size: 'Sandbus-Size',
  error: 'Sandbus-Error',
} as const;

/** Where an event came from: a message of a stream. */
export interface Cause {
  readonly stream: string;
  readonly sequence: number;
}

/**
 * Id of the event that `service` makes of `cause`; also its Nats-Msg-Id. `what` tells several events of one cause apart.
 * The job stands in it because sequences begin again when a stream is made anew, and the server would then drop an event
 * as one that it has just seen.
 */
export function eventId(service: string, what: string, cause: Cause, job: JobRef): string {
  return `${service}:${what}:${job.jobId}:${cause.stream}:${cause.sequence}`;
}
