/** Where a verified job goes, and what its supervisor does about it. Pure. */
import type {
  JobCancelled,
  JobCancelRequested,
  JobFinished,
  JobRejected,
  JobRouted,
  JobVerified,
  Runtime,
} from '../../schemas/generated/events.ts';
import { toMicros } from '../platform/clock.ts';
import { detectRuntime } from '../platform/detect-runtime.ts';
import type { JobEntry } from '../platform/job-state.ts';
import { noAccounts, noUsage } from '../platform/no-account.ts';

export interface RouteFacts {
  readonly nowMs: number;
  readonly machine: string;
}

export type RouteDecision =
  | { readonly kind: 'routed'; readonly event: JobRouted }
  | { readonly kind: 'rejected'; readonly event: JobRejected };

export function decideRoute(job: JobVerified, facts: RouteFacts): RouteDecision {
  const detection = detectRuntime({
    fileName: job.plugin.name,
    head: job.contentHead,
    signedRuntime: job.signedRuntime,
    signedArchitecture: job.signedArchitecture,
    machine: facts.machine,
  });
  if (!detection.ok)
    return {
      kind: 'rejected',
      event: rejection(job, facts.nowMs, detection.reason, detection.detail, job.plugin),
    };
  const { jobId, tenant, plugin, envelope, trustStoreVersion, spec } = job;
  return {
    kind: 'routed',
    event: {
      jobId,
      tenant,
      routedAt: toMicros(facts.nowMs),
      plugin,
      envelope,
      trustStoreVersion,
      trustStoreDigest: job.trustStoreDigest,
      runtime: detection.runtime,
      deviceClass: spec.requiresGpu ? 'gpu' : 'cpu',
      evidence: detection.evidence,
      decidedBy: detection.decidedBy,
      spec,
    },
  };
}

export function rejection(
  job: { jobId: string; tenant: string },
  nowMs: number,
  reason: string,
  detail: string,
  plugin: { name: string; sha256: string } | null,
): JobRejected {
  return {
    jobId: job.jobId,
    tenant: job.tenant,
    rejectedAt: toMicros(nowMs),
    stage: 'router',
    reason,
    detail,
    pluginName: plugin?.name ?? null,
    pluginSha256: plugin?.sha256 ?? null,
  };
}

/** What a cancel request does to a job: ends it while it waits, or asks its executor to end it. */
export type CancelDecision =
  | { readonly kind: 'end'; readonly event: JobCancelled }
  | { readonly kind: 'ask-executor'; readonly cancel: NonNullable<JobEntry['cancel']> }
  | { readonly kind: 'too-late' };

export function decideCancel(entry: JobEntry, request: JobCancelRequested, nowMs: number): CancelDecision {
  const { requestedBy, reason, jobId, tenant } = request;
  if (entry.state === 'ended') return { kind: 'too-late' };
  if (entry.state === 'started')
    return { kind: 'ask-executor', cancel: entry.cancel ?? { requestedBy, reason } };
  return { kind: 'end', event: { jobId, tenant, cancelledAt: toMicros(nowMs), requestedBy, reason } };
}

export interface SuperviseFacts {
  readonly nowMs: number;
  /** For how long the entry has not changed, by the observer's own monotonic clock. */
  readonly unchangedMs: number;
  readonly leaseMs: number;
}

export type SuperviseDecision =
  | { readonly kind: 'rejected'; readonly event: JobRejected }
  | { readonly kind: 'finished'; readonly event: JobFinished };

/** What must be done about a job that has not ended; null is nothing. */
export function supervise(entry: JobEntry, facts: SuperviseFacts): SuperviseDecision | null {
  if (entry.state === 'ended') return null;
  const deadlinePassed = toMicros(facts.nowMs) > entry.deadline;
  const lost = facts.unchangedMs > facts.leaseMs;
  if (entry.state === 'started') {
    const triesLeft = entry.attempt < entry.maxAttempts && !deadlinePassed && entry.cancel === null;
    return lost && !triesLeft ? { kind: 'finished', event: executorLost(entry, facts) } : null;
  }
  if (!deadlinePassed || (entry.state === 'claimed' && !lost)) return null;
  const waited =
    entry.runtime === null
      ? entry.held === null
        ? 'before it was routed'
        : 'while it waited for other jobs of its tenant'
      : `waiting for a ${entry.runtime} ${entry.deviceClass} executor`;
  const detail = `the job's deadline ${new Date(entry.deadline / 1000).toISOString()} passed ${waited}`;
  return { kind: 'rejected', event: rejection(entry, facts.nowMs, 'DEADLINE_PASSED', detail, null) };
}

const emptySha256 = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';
const noOutput = {
  inline: new Uint8Array(),
  totalBytes: 0,
  keptBytes: 0,
  sha256: emptySha256,
  truncated: true,
};

/** The honest end of a job whose executor is gone: user code may have run, and nobody knows how far. */
function executorLost(entry: JobEntry, facts: SuperviseFacts): JobFinished {
  return {
    jobId: entry.jobId,
    tenant: entry.tenant,
    finishedAt: toMicros(facts.nowMs),
    attempt: entry.attempt,
    executor: entry.executor ?? '',
    runtime: (entry.runtime ?? 'native') as Runtime,
    deviceClass: entry.deviceClass === 'gpu' ? 'gpu' : 'cpu',
    outcome: 'executor_lost',
    exitCode: null,
    signal: null,
    error: {
      step: 'executor',
      errno: null,
      message: `executor ${entry.executor} has said nothing for ${Math.round(facts.unchangedMs)} ms`,
      mend: 'see the log of that executor; submit the job again, or with maxAttempts above 1 if it may run twice',
    },
    usage: noUsage,
    stdout: noOutput,
    stderr: noOutput,
    ...noAccounts('the executor was lost'),
    artifacts: [],
    skippedOutputs: [],
    sandbox: {
      filterDigest: '',
      namespaces: [],
      cgroup: '',
      landlockAbi: 0,
      uid: null,
      network: 'none',
      devices: [],
    },
    setupMicros: {},
    superseded: false,
  };
}
