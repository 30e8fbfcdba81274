/** Gathers the facts about a submission, lets `decide` decide, and says so on the bus. */
import type { JobSubmitted } from '../../schemas/generated/events.ts';
import { OperationalError, PoisonError } from '../platform/errors.ts';
import type { OutgoingEvent } from '../platform/events.ts';
import { asCause, outgoing, publishEvent, readJobEvent } from '../platform/events.ts';
import type { JobSnapshot, JobStates } from '../platform/job-state.ts';
import { endJob, openEntry, republish } from '../platform/job-state.ts';
import type { Delivery } from '../platform/nats/bus.ts';
import type { ObjectBucket } from '../platform/nats/objects.ts';
import type { ServiceContext } from '../platform/service.ts';
import type { Span } from '../platform/telemetry.ts';
import { failSpan, messagingAttributes, SpanKind, traceparentOf } from '../platform/telemetry.ts';
import { eventId, headerNames, kvKey, subjects } from '../platform/topology.ts';
import { formatTraceparent, newTraceParent, parseTraceparent } from '../platform/traceparent.ts';
import type { WatchedFile } from '../platform/watched-file.ts';
import type { EnvelopeMemory, Policy } from '../trust/index.ts';
import { concurrencyOf } from '../trust/index.ts';
import type { TrustStoreKeeper } from '../trust-store/keeper.ts';
import type { VerifyDecision } from './decide.ts';
import { deadlineOf, decideSubmission } from './decide.ts';
import { findFault } from './form.ts';
import { findPlugin, keepUploads, storePlugin } from './plugins.ts';

export interface VerifierParts {
  readonly context: ServiceContext;
  readonly states: JobStates;
  readonly plugins: ObjectBucket;
  readonly trust: TrustStoreKeeper;
  readonly policy: WatchedFile<Policy>;
  readonly memory: EnvelopeMemory;
}

const service = 'verifier';
/** A verifier whose trust store is behind lets another have the submission, for some seconds. */
const outdatedDeliveries = 5;

/** Handles one JobSubmitted. */
export async function handleSubmission(parts: VerifierParts, delivery: Delivery): Promise<void> {
  const { telemetry, log } = parts.context;
  const job = readJobEvent('JobSubmitted', delivery);
  const parent = submitSpan(delivery);
  const snapshot = await openJob(parts, job, delivery, parent.traceparent);
  if (parent.delegated) recordSubmit(parts, job, delivery, snapshot.entry.traceparent);
  if (await republish(parts.context.bus, snapshot.entry)) return;

  const attributes = { ...messagingAttributes('process', 'job.submitted'), ...jobAttributes(job) };
  const options = { kind: SpanKind.CONSUMER, parent: snapshot.entry.traceparent, attributes };
  await telemetry.within('verify', options, async (span) => {
    const decision = await decide(parts, job, delivery);
    log.info({ job: kvKey(job), trace: span.spanContext().traceId, decision: decision.kind }, 'submission');
    await say(parts, delivery, decision, span);
  });
}

/** Ends the job of a submission that could not be handled although it was tried again and again. */
export async function rejectExhausted(
  parts: VerifierParts,
  delivery: Delivery,
  detail: string,
): Promise<void> {
  const { bus, clock } = parts.context;
  const job = readJobEvent('JobSubmitted', delivery);
  const { traceparent } = submitSpan(delivery);
  await openJob(parts, job, delivery, traceparent);
  const cause = asCause(delivery);
  const event = outgoing(
    'JobRejected',
    {
      tenant: job.tenant,
      jobId: job.jobId,
      rejectedAt: Math.round(clock.nowMs() * 1000),
      stage: service,
      reason: 'RETRIES_EXHAUSTED',
      detail,
      pluginName: job.plugin.name,
      pluginSha256: job.plugin.content.sha256,
    },
    {
      subject: subjects.job('rejected', job),
      id: eventId(service, 'rejected', cause, job),
      cause,
      traceparent,
    },
  );
  await endJob(bus, parts.states, job, event, (entry) => entry.state === 'open');
}

/**
 * The submitter's span. With a traceparent of its own and nothing more said, the submitter exports it. Otherwise it is
 * recorded here on the submitter's behalf, under the ids that it chose, or new ones.
 */
function submitSpan(delivery: Delivery): { traceparent: string; delegated: boolean } {
  const given = delivery.headers[headerNames.traceparent];
  const chosen = parseTraceparent(given);
  if (given === undefined || chosen === null)
    return { traceparent: formatTraceparent(newTraceParent()), delegated: true };
  return { traceparent: given, delegated: delivery.headers[headerNames.delegatedSpan] === '1' };
}

function recordSubmit(
  parts: VerifierParts,
  job: JobSubmitted,
  delivery: Delivery,
  traceparent: string | null,
): void {
  const ids = parseTraceparent(traceparent);
  if (ids === null) return;
  const attributes = { ...messagingAttributes('publish', 'job.submitted'), ...jobAttributes(job) };
  const startMs = Math.min(job.submittedAt / 1000, delivery.publishedAtMs);
  parts.context.telemetry.recordDelegated('submit', ids, startMs, delivery.publishedAtMs, attributes);
}

/** Makes the job's entry. Throws PoisonError DUPLICATE_JOB when another submission made it. */
async function openJob(
  parts: VerifierParts,
  job: JobSubmitted,
  delivery: Delivery,
  traceparent: string,
): Promise<JobSnapshot> {
  const entry = openEntry(job, {
    submissionSequence: delivery.sequence,
    traceparent,
    deadline: deadlineOf(job, delivery.publishedAtMs),
    maxAttempts: Math.max(1, job.maxAttempts),
    concurrency: concurrencyOf(parts.policy.current(), job.tenant),
  });
  const snapshot = (await parts.states.create(entry)) ?? (await parts.states.read(job));
  if (snapshot === null)
    throw new OperationalError('STALE_STATE', `job ${kvKey(job)} has a state that cannot be read yet`);
  if (snapshot.entry.submissionSequence !== delivery.sequence)
    throw new PoisonError('DUPLICATE_JOB', `job ${kvKey(job)} was submitted before; a job id is used once`);
  return snapshot;
}

async function decide(parts: VerifierParts, job: JobSubmitted, delivery: Delivery): Promise<VerifyDecision> {
  const deadlineMs = deadlineOf(job, delivery.publishedAtMs) / 1000;
  const plugin = await findPlugin(job, parts.plugins);
  // What is not in form may name thousands of uploads: it is rejected without a look at them.
  const inForm = findFault(job, delivery.publishedAtMs) === null;
  const missingUpload = inForm ? await keepUploads(job, deadlineMs, parts.plugins) : null;
  const { store, problem } = await parts.trust.current();
  if (
    problem?.reason === 'TRUST_STORE_OUTDATED' &&
    store === null &&
    delivery.deliveryCount < outdatedDeliveries
  )
    throw new OperationalError(problem.reason, problem.detail, { retryMs: 250 });
  const decision = decideSubmission(
    job,
    {
      nowMs: parts.context.clock.nowMs(),
      publishedAtMs: delivery.publishedAtMs,
      submissionSequence: delivery.sequence,
      plugin,
      missingUpload,
      trustStore: store,
      trustStoreProblem: problem,
      policy: parts.policy.current(),
    },
    parts.memory,
  );
  if (decision.kind === 'verified' && plugin !== null)
    await storePlugin(job, plugin, { deadlineMs, store: parts.plugins });
  return decision;
}

async function say(
  parts: VerifierParts,
  delivery: Delivery,
  decision: VerifyDecision,
  span: Span,
): Promise<void> {
  const { bus } = parts.context;
  const job = decision.event;
  const cause = asCause(delivery);
  const about = {
    subject: subjects.job(decision.kind, job),
    id: eventId(service, decision.kind, cause, job),
    cause,
    traceparent: traceparentOf(span),
  };
  if (decision.kind === 'verified') {
    await publishEvent(bus, outgoing('JobVerified', decision.event, about));
    return;
  }
  failSpan(span, decision.event.reason, decision.event.detail);
  const event: OutgoingEvent = outgoing('JobRejected', decision.event, about);
  await endJob(bus, parts.states, job, event, (entry) => entry.state === 'open');
}

function jobAttributes(job: JobSubmitted): Record<string, string> {
  return {
    'sandbus.job.id': job.jobId,
    'sandbus.tenant': job.tenant,
    'sandbus.plugin.name': job.plugin.name,
  };
}
