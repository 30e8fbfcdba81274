/** What a submission becomes: JobVerified or JobRejected. Pure. */
import type { JobRejected, JobSpec, JobSubmitted, JobVerified } from '../../schemas/generated/events.ts';
import { toMicros } from '../platform/clock.ts';
import type { EnvelopeMemory, Policy, Rejection, RejectReason, Trusted, TrustStore } from '../trust/index.ts';
import { concurrencyOf, decideTrust } from '../trust/index.ts';
import { findFault } from './form.ts';

/** The plugin's bytes as the verifier found them. */
export interface PluginFacts {
  /** SHA-256 of the bytes that are really there. */
  readonly sha256: string;
  readonly size: number;
  /** The first bytes, for runtime detection. */
  readonly head: Uint8Array;
}

export interface VerifyFacts {
  readonly nowMs: number;
  /** When the submission reached the bus. */
  readonly publishedAtMs: number;
  readonly submissionSequence: number;
  /** Null when they are not in the store. */
  readonly plugin: PluginFacts | null;
  /** Which of its other uploads is not in the store, in words; null when all are. */
  readonly missingUpload?: string | null;
  readonly trustStore: TrustStore | null;
  readonly trustStoreProblem?: Rejection | null;
  readonly policy: Policy | null;
}

export type VerifyDecision =
  | { readonly kind: 'verified'; readonly event: JobVerified }
  | { readonly kind: 'rejected'; readonly event: JobRejected };

const defaultDeadlineMs = 3_600_000;

export function decideSubmission(
  job: JobSubmitted,
  facts: VerifyFacts,
  memory?: EnvelopeMemory,
): VerifyDecision {
  const fault = findFault(job, facts.publishedAtMs);
  if (fault !== null) return rejected(job, facts, 'MALFORMED', fault);
  if (facts.plugin === null)
    return rejected(
      job,
      facts,
      'PLUGIN_UNAVAILABLE',
      `tenant ${job.tenant} has no upload with the SHA-256 ${job.plugin.content.sha256} (any more)`,
    );
  const trust = decideTrust(
    {
      tenant: job.tenant,
      pluginName: job.plugin.name,
      pluginSha256: facts.plugin.sha256,
      envelope: job.envelope,
      requested: {
        limits: job.limits,
        requiresGpu: job.requiresGpu,
        network: job.network,
        maxAttempts: job.maxAttempts,
      },
    },
    {
      now: facts.nowMs,
      trustStore: facts.trustStore,
      trustStoreProblem: facts.trustStoreProblem ?? null,
      policy: facts.policy,
    },
    memory,
  );
  if (!trust.ok) return rejected(job, facts, trust.reason, trust.detail);
  if (job.plugin.content.sha256 !== facts.plugin.sha256)
    return rejected(
      job,
      facts,
      'DIGEST_MISMATCH',
      `the submission says SHA-256 ${job.plugin.content.sha256}, its bytes have ${facts.plugin.sha256}`,
    );
  if (facts.missingUpload != null) return rejected(job, facts, 'PLUGIN_UNAVAILABLE', facts.missingUpload);
  return { kind: 'verified', event: verified(job, facts, facts.plugin, trust) };
}

/** By when the job must have started, microseconds since 1970. */
export function deadlineOf(job: JobSubmitted, publishedAtMs: number): number {
  return job.deadline ?? toMicros(publishedAtMs + defaultDeadlineMs);
}

function verified(job: JobSubmitted, facts: VerifyFacts, plugin: PluginFacts, trust: Trusted): JobVerified {
  const { tenant, jobId, args, env, stdin, inputs, labels } = job;
  const { limits, requiresGpu, network, maxAttempts } = trust;
  const deadline = deadlineOf(job, facts.publishedAtMs);
  const spec: JobSpec = {
    args,
    env,
    stdin,
    inputs,
    limits,
    requiresGpu,
    network,
    maxAttempts,
    deadline,
    labels,
  };
  return {
    jobId,
    tenant,
    verifiedAt: toMicros(facts.nowMs),
    submissionSequence: facts.submissionSequence,
    plugin: { name: job.plugin.name, sha256: plugin.sha256, size: plugin.size },
    contentHead: plugin.head,
    envelope: job.envelope ?? new Uint8Array(),
    keyIds: trust.keyIds,
    trustStoreVersion: trust.trustStoreVersion,
    trustStoreDigest: trust.trustStoreDigest,
    policyDigest: trust.policyDigest,
    signedRuntime: trust.statement.runtime,
    signedArchitecture: trust.statement.architecture,
    spec,
    concurrency: concurrencyOf(facts.policy, tenant),
  };
}

function rejected(
  job: JobSubmitted,
  facts: VerifyFacts,
  reason: RejectReason,
  detail: string,
): VerifyDecision {
  return {
    kind: 'rejected',
    event: {
      jobId: job.jobId,
      tenant: job.tenant,
      rejectedAt: toMicros(facts.nowMs),
      stage: 'verifier',
      reason,
      detail,
      pluginName: job.plugin.name,
      pluginSha256: facts.plugin?.sha256 ?? job.plugin.content.sha256,
    },
  };
}
