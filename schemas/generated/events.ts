// Generated from schemas/*.avsc by `npm run generate`. Do not edit.

/** Microseconds since 1970-01-01T00:00:00Z (Avro timestamp-micros). */
export type Micros = number;

/** A signed statement of the whole tree (C2SP tlog-checkpoint). Subject audit-checkpoint. */
export interface AuditCheckpoint {
  readonly origin: string;
  readonly treeSize: number;
  readonly rootHash: Uint8Array;
  readonly at: Micros;
  /** The signed note, as text. */
  readonly note: Uint8Array;
}

/** What the Merkle tree hashes (RFC 6962 leaf input). */
export interface AuditLeaf {
  readonly sequence: number;
  readonly recordedAt: Micros;
  readonly subject: string;
  readonly eventId: string;
  readonly signer: string;
  /** SHA-256 of salt and payload. */
  readonly payloadHash: Uint8Array;
  /** Leaf hash of the previous event of this job; empty for the first. */
  readonly previousLeafHash: Uint8Array;
}

/** One record or log chunk, single-object encoded. */
export interface AuditItem {
  readonly sequence: number;
  readonly bytes: Uint8Array;
}

/** Answer to audit-read.<tenant>. */
export interface AuditPage {
  readonly items: readonly AuditItem[];
  /** Ask after this sequence for the next page. */
  readonly next: number;
  readonly more: boolean;
}

/** One event as the ledger holds it. Subject audit.<tenant>.<jobId>.<kind>. */
export interface AuditRecord {
  /** Position in the ledger, from 0. */
  readonly sequence: number;
  /** Position among the records of the tenant, from 0. */
  readonly tenantSequence: number;
  readonly recordedAt: Micros;
  readonly tenant: string;
  readonly jobId: string;
  /** submitted, verified, rejected, routed, started, finished, cancelled, cancel-requested, dead-lettered. */
  readonly kind: string;
  readonly subject: string;
  readonly eventId: string;
  /** Service that made it; "submitter" for a submission. */
  readonly signer: string;
  readonly signature: null | Uint8Array;
  readonly traceparent: null | string;
  readonly stream: string;
  readonly streamSequence: number;
  /** The event, single-object encoded; null once erased. */
  readonly payload: null | Uint8Array;
  readonly payloadSalt: Uint8Array;
  readonly payloadHash: Uint8Array;
  readonly previousLeafHash: Uint8Array;
  readonly leafHash: Uint8Array;
}

/** A submitter asks for a job to end. Subject job.cancel-requested.<tenant>.<jobId>. */
export interface JobCancelRequested {
  /** UUIDv7, chosen by the submitter. */
  readonly jobId: string;
  readonly tenant: string;
  readonly requestedAt: Micros;
  readonly requestedBy: string;
  readonly reason: string;
}

/** The job was cancelled before it started; terminal. Subject job.cancelled.<tenant>.<jobId>. */
export interface JobCancelled {
  /** UUIDv7, chosen by the submitter. */
  readonly jobId: string;
  readonly tenant: string;
  readonly cancelledAt: Micros;
  readonly requestedBy: string;
  readonly reason: string;
}

/** A message that could not be handled, kept as it was. Subject job.dead-lettered.<tenant>.<jobId>, with "-" for a token that the message did not have. */
export interface JobDeadLettered {
  /** UUIDv7, chosen by the submitter. */
  readonly jobId: string;
  readonly tenant: string;
  readonly deadLetteredAt: Micros;
  /** Who gave up on it. */
  readonly service: string;
  /** UNDECODABLE, SUBJECT_MISMATCH, DUPLICATE_JOB, DELIVERIES_EXHAUSTED, ... */
  readonly reason: string;
  readonly detail: string;
  readonly stream: string;
  readonly streamSequence: number;
  readonly subject: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The message as it came. */
  readonly payload: Uint8Array;
}

export type Runtime = 'native' | 'python' | 'node' | 'ruby' | 'bash';

export type DeviceClass = 'cpu' | 'gpu';

export type Outcome = 'exited' | 'signaled' | 'wall_time_exceeded' | 'cpu_time_exceeded' | 'memory_exceeded' | 'output_exceeded' | 'syscall_denied' | 'cancelled' | 'setup_failed' | 'executor_lost';

/** Why the sandbox could not be built, or the executor was lost. */
export interface SetupError {
  readonly step: string;
  readonly errno: null | string;
  readonly message: string;
  readonly mend: string;
}

export interface OomVictim {
  /** The name of the process. */
  readonly program: string;
  /** Its number in the job. */
  readonly pid: number;
}

/** Resources of the whole process tree. */
export interface Usage {
  readonly wallMicros: number;
  readonly userMicros: number;
  readonly systemMicros: number;
  /** Null where the kernel does not say (cgroup v2 before Linux 5.19). */
  readonly peakMemoryBytes: null | number;
  /** Null where the kernel does not say (before Linux 6.1). */
  readonly peakProcesses: null | number;
  readonly throttledMicros: number;
  readonly stdinBytes: number;
  readonly oomKills: number;
  /** The processes that the kernel's OOM killer took, as far as it tells; at most 16. */
  readonly oomVictims: readonly OomVictim[];
}

/** One output stream of the plugin, as bytes. */
export interface OutputStream {
  /** The first 64 KiB. */
  readonly inline: Uint8Array;
  /** All that was written, kept or not. */
  readonly totalBytes: number;
  /** What log chunks hold. */
  readonly keptBytes: number;
  /** SHA-256 in lower-case hex of all that was written. */
  readonly sha256: string;
  readonly truncated: boolean;
}

/** Exact counts of system calls by name. */
export interface SyscallCounts {
  readonly available: boolean;
  /** Why not; null when available. */
  readonly unavailableReason: null | string;
  readonly total: number;
  readonly counts: Readonly<Record<string, number>>;
}

/** One row of refused system calls. */
export interface Refusal {
  /** Name, or "unknown". */
  readonly syscall: string;
  readonly number: number;
  /** The argument rule that refused it; null when the call itself is refused. */
  readonly rule: null | string;
  /** What the plugin got, e.g. EPERM. */
  readonly answer: string;
  readonly count: number;
  /** First arguments seen, hex. */
  readonly args: readonly string[];
  /** First program seen. */
  readonly program: string;
}

/** One execve. */
export interface Execution {
  readonly path: string;
  readonly interpreter: null | string;
  /** Since the plugin started. */
  readonly atMicros: number;
}

/** Programs executed, in order. */
export interface Executions {
  readonly available: boolean;
  /** Why not; null when available. */
  readonly unavailableReason: null | string;
  readonly dropped: number;
  readonly entries: readonly Execution[];
}

/** One device. */
export interface DeviceAccess {
  readonly device: string;
  readonly type: string;
  readonly major: number;
  readonly minor: number;
  readonly allowed: number;
  readonly denied: number;
}

/** Opens of devices, allowed and denied. */
export interface DeviceAccesses {
  readonly available: boolean;
  /** Why not; null when available. */
  readonly unavailableReason: null | string;
  readonly accesses: readonly DeviceAccess[];
}

/** A file that the plugin left in /job/out. */
export interface Artifact {
  readonly name: string;
  readonly size: number;
  readonly sha256: string;
}

/** A thing in /job/out that was not kept. */
export interface SkippedOutput {
  readonly name: string;
  readonly reason: string;
}

/** none: loopback only. host: needs signature, policy and the consent of the executor. */
export type Network = 'none' | 'host';

/** The sandbox as it was built for this attempt. */
export interface Sandbox {
  /** SHA-256 of the seccomp program, hex; the same for every runtime. */
  readonly filterDigest: string;
  readonly namespaces: readonly string[];
  /** v1, v2 or hybrid. */
  readonly cgroup: string;
  /** 0 where the kernel has none. */
  readonly landlockAbi: number;
  /** User id of the running job; null before it has one. */
  readonly uid: null | number;
  readonly network: Network;
  /** Device nodes granted beyond the basic ones. */
  readonly devices: readonly string[];
}

/** An attempt ended; terminal. Subject job.finished.<tenant>.<jobId>. */
export interface JobFinished {
  /** UUIDv7, chosen by the submitter. */
  readonly jobId: string;
  readonly tenant: string;
  readonly finishedAt: Micros;
  readonly attempt: number;
  readonly executor: string;
  readonly runtime: Runtime;
  readonly deviceClass: DeviceClass;
  readonly outcome: Outcome;
  readonly exitCode: null | number;
  readonly signal: null | number;
  readonly error: null | SetupError;
  readonly usage: Usage;
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  readonly syscalls: SyscallCounts;
  /** Calls that policy refuses. */
  readonly denials: readonly Refusal[];
  /** Calls answered ENOSYS, which runtimes try and fall back from. */
  readonly probes: readonly Refusal[];
  readonly executions: Executions;
  readonly devices: DeviceAccesses;
  /** Kept in the object store `artifacts`. */
  readonly artifacts: readonly Artifact[];
  readonly skippedOutputs: readonly SkippedOutput[];
  readonly sandbox: Sandbox;
  /** Time of each set-up step. */
  readonly setupMicros: Readonly<Record<string, number>>;
  /** True when another result of this job had already won. */
  readonly superseded: boolean;
}

export type RejectStage = 'verifier' | 'router' | 'executor';

/** The job will not run; terminal. Subject job.rejected.<tenant>.<jobId>. */
export interface JobRejected {
  /** UUIDv7, chosen by the submitter. */
  readonly jobId: string;
  readonly tenant: string;
  readonly rejectedAt: Micros;
  readonly stage: RejectStage;
  /** Code, e.g. BAD_SIGNATURE: SECURITY.md has the table. */
  readonly reason: string;
  /** What was wrong, where, and what to do. */
  readonly detail: string;
  readonly pluginName: null | string;
  readonly pluginSha256: null | string;
}

/** The very bytes that were verified, in the object store `plugins` under their digest. */
export interface PluginRef {
  /** File name, as signed. */
  readonly name: string;
  /** SHA-256 in lower-case hex. */
  readonly sha256: string;
  /** Length in bytes. */
  readonly size: number;
}

export type EvidenceSource = 'statement' | 'extension' | 'content';

/** What one source says about the runtime. */
export interface RuntimeEvidence {
  readonly source: EvidenceSource;
  /** Null when this source does not tell. */
  readonly runtime: null | string;
  readonly detail: string;
}

/** Bytes of a job, carried here or by digest of an upload. */
export interface Content {
  /** The bytes themselves, at most 512 KiB; null when they were uploaded. */
  readonly inline: null | Uint8Array;
  /** SHA-256 in lower-case hex of the bytes. */
  readonly sha256: string;
  /** Length in bytes. */
  readonly size: number;
}

/** A file that the plugin finds in /job. */
export interface InputFile {
  /** Relative path below /job: no "..", no leading "/". */
  readonly name: string;
  readonly content: Content;
}

/** Effective limits, enforced by cgroup, mount and clock. */
export interface Limits {
  /** Memory of the whole process tree, bytes. */
  readonly memoryBytes: number;
  /** CPU quota, thousandths of a core. */
  readonly cpuMillis: number;
  /** Wall clock, milliseconds. */
  readonly wallMs: number;
  /** CPU time of the whole tree, milliseconds. */
  readonly cpuTimeMs: null | number;
  /** Processes and threads at one time. */
  readonly processes: number;
  /** Kept bytes of each of stdout and stderr. */
  readonly outputBytes: number;
  /** Size of the private /tmp, /job and /dev/shm together, bytes. */
  readonly tmpBytes: number;
}

/** All that a job asked for, with its effective limits. */
export interface JobSpec {
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Standard input; null is empty. */
  readonly stdin: null | Content;
  readonly inputs: readonly InputFile[];
  readonly limits: Limits;
  readonly requiresGpu: boolean;
  readonly network: Network;
  /** How often user code may be started; 1 unless the job asked for more. */
  readonly maxAttempts: number;
  /** The job must have started by then. */
  readonly deadline: Micros;
  readonly labels: Readonly<Record<string, string>>;
}

/** All that an executor needs. Subject work.<runtime>.<cpu|gpu>.<tenant>.<jobId>. */
export interface JobRouted {
  /** UUIDv7, chosen by the submitter. */
  readonly jobId: string;
  readonly tenant: string;
  readonly routedAt: Micros;
  readonly plugin: PluginRef;
  readonly envelope: Uint8Array;
  /** The executor's store must be at least this new. */
  readonly trustStoreVersion: number;
  /** A store of the same version must be this one. */
  readonly trustStoreDigest: string;
  readonly runtime: Runtime;
  readonly deviceClass: DeviceClass;
  /** What statement, extension and content say; they agree. */
  readonly evidence: readonly RuntimeEvidence[];
  /** The strongest source that told. */
  readonly decidedBy: EvidenceSource;
  readonly spec: JobSpec;
}

/** User code is about to start. Subject job.started.<tenant>.<jobId>. */
export interface JobStarted {
  /** UUIDv7, chosen by the submitter. */
  readonly jobId: string;
  readonly tenant: string;
  readonly startedAt: Micros;
  /** 1 for the first. */
  readonly attempt: number;
  readonly executor: string;
  readonly runtime: Runtime;
  readonly deviceClass: DeviceClass;
  readonly sandbox: Sandbox;
  readonly limits: Limits;
}

/** The file to run. */
export interface SubmittedPlugin {
  /** File name, as signed; its extension tells the runtime. */
  readonly name: string;
  readonly content: Content;
}

/** What the job asks for; null takes the default, and never more than is signed and allowed. */
export interface RequestedLimits {
  /** Memory of the whole process tree, bytes. */
  readonly memoryBytes: null | number;
  /** CPU quota, thousandths of a core. */
  readonly cpuMillis: null | number;
  /** Wall clock, milliseconds. */
  readonly wallMs: null | number;
  /** CPU time of the whole tree, milliseconds. */
  readonly cpuTimeMs: null | number;
  /** Processes and threads at one time. */
  readonly processes: null | number;
  /** Kept bytes of each of stdout and stderr. */
  readonly outputBytes: null | number;
  /** Size of the private /tmp, /job and /dev/shm together, bytes. */
  readonly tmpBytes: null | number;
}

/** A submitter asks for a plugin to run. Subject job.submitted.<tenant>.<jobId>. */
export interface JobSubmitted {
  /** UUIDv7, chosen by the submitter. */
  readonly jobId: string;
  readonly tenant: string;
  readonly submittedAt: Micros;
  readonly plugin: SubmittedPlugin;
  /** DSSE envelope, JSON; null is an unsigned plugin, which is rejected. */
  readonly envelope: null | Uint8Array;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Standard input; null is empty. */
  readonly stdin: null | Content;
  readonly inputs: readonly InputFile[];
  readonly limits: RequestedLimits;
  readonly requiresGpu: boolean;
  readonly network: Network;
  readonly maxAttempts: number;
  /** The job must have started by then; one hour after submission unless given. */
  readonly deadline: null | Micros;
  readonly labels: Readonly<Record<string, string>>;
}

/** Signature, digest, trust and policy hold. Subject job.verified.<tenant>.<jobId>. */
export interface JobVerified {
  /** UUIDv7, chosen by the submitter. */
  readonly jobId: string;
  readonly tenant: string;
  readonly verifiedAt: Micros;
  /** Sequence of the submission in SUBMISSIONS. */
  readonly submissionSequence: number;
  readonly plugin: PluginRef;
  /** The first bytes of the plugin, for runtime detection. */
  readonly contentHead: Uint8Array;
  readonly envelope: Uint8Array;
  readonly keyIds: readonly string[];
  readonly trustStoreVersion: number;
  readonly trustStoreDigest: string;
  readonly policyDigest: string;
  readonly signedRuntime: Runtime;
  readonly signedArchitecture: null | string;
  readonly spec: JobSpec;
  /** How many jobs of the tenant may be under way at one time; null: as many as there are. */
  readonly concurrency: null | number;
}

export type LogStream = 'stdout' | 'stderr';

/** A piece of output while the plugin runs. Subject log.<tenant>.<jobId>.<stdout|stderr>. */
export interface LogChunk {
  /** UUIDv7, chosen by the submitter. */
  readonly jobId: string;
  readonly tenant: string;
  readonly at: Micros;
  readonly attempt: number;
  readonly stream: LogStream;
  /** 0, 1, 2, … in this stream. */
  readonly sequence: number;
  /** Of the first byte in the stream. */
  readonly offset: number;
  readonly bytes: Uint8Array;
}

/** Every event and page by its name. */
export interface Events {
  readonly AuditCheckpoint: AuditCheckpoint;
  readonly AuditLeaf: AuditLeaf;
  readonly AuditPage: AuditPage;
  readonly AuditRecord: AuditRecord;
  readonly JobCancelRequested: JobCancelRequested;
  readonly JobCancelled: JobCancelled;
  readonly JobDeadLettered: JobDeadLettered;
  readonly JobFinished: JobFinished;
  readonly JobRejected: JobRejected;
  readonly JobRouted: JobRouted;
  readonly JobStarted: JobStarted;
  readonly JobSubmitted: JobSubmitted;
  readonly JobVerified: JobVerified;
  readonly LogChunk: LogChunk;
}

export const eventNames = [
  'AuditCheckpoint',
  'AuditLeaf',
  'AuditPage',
  'AuditRecord',
  'JobCancelRequested',
  'JobCancelled',
  'JobDeadLettered',
  'JobFinished',
  'JobRejected',
  'JobRouted',
  'JobStarted',
  'JobSubmitted',
  'JobVerified',
  'LogChunk',
] as const;

export type EventName = keyof Events;
