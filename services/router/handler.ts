/** Routes verified jobs and answers cancel requests. */
import type { JobCancelRequested, JobVerified } from '../../schemas/generated/events.ts';
import { OperationalError } from '../platform/errors.ts';
import { asCause, outgoing, publishEvent, readJobEvent, readServiceEvent } from '../platform/events.ts';
import type { JobEntry, JobSnapshot, JobStates } from '../platform/job-state.ts';
import { endJob, republish, withRoute } from '../platform/job-state.ts';
import type { Delivery, StreamMessage } from '../platform/nats/bus.ts';
import type { ServiceContext } from '../platform/service.ts';
import type { Span } from '../platform/telemetry.ts';
import { failSpan, messagingAttributes, SpanKind, traceparentOf } from '../platform/telemetry.ts';
import type { JobRef, Route } from '../platform/topology.ts';
import { eventId, headerNames, kvKey, subjects } from '../platform/topology.ts';
import type { Admission } from './admission.ts';
import type { RouterConfig } from './config.ts';
import { decideCancel, decideRoute, rejection } from './decide.ts';

export interface RouterParts {
  readonly context: ServiceContext;
  readonly states: JobStates;
  readonly config: RouterConfig;
  readonly admission: Admission;
}

const service = 'router';

/** Handles one JobVerified. */
export function handleVerified(parts: RouterParts, delivery: Delivery): Promise<void> {
  return handle(parts, delivery, 'new');
}

/** Routes a job that was held, by its JobVerified; it has its place. */
export function routeHeld(parts: RouterParts, message: StreamMessage): Promise<void> {
  return handle(parts, message, 'held');
}

async function handle(parts: RouterParts, delivery: StreamMessage, turn: Turn): Promise<void> {
  const { bus, telemetry } = parts.context;
  const job = readServiceEvent(bus, 'JobVerified', delivery);
  const attributes = {
    ...messagingAttributes('process', 'job.verified'),
    'sandbus.job.id': job.jobId,
    'sandbus.tenant': job.tenant,
  };
  const options = { kind: SpanKind.CONSUMER, parent: delivery.headers[headerNames.traceparent], attributes };
  await telemetry.within('route', options, (span) => route(parts, job, delivery, { span, turn }));
}

/** Whether a job has just been verified, or was held and has its place now. */
type Turn = 'new' | 'held';

async function route(
  parts: RouterParts,
  job: JobVerified,
  delivery: StreamMessage,
  { span, turn }: { span: Span; turn: Turn },
): Promise<void> {
  const { bus, clock, log } = parts.context;
  const decision = decideRoute(job, { nowMs: clock.nowMs(), machine: parts.config.machine });
  const cause = asCause(delivery);
  const about = { id: eventId(service, decision.kind, cause, job), cause, traceparent: traceparentOf(span) };
  log.info({ job: kvKey(job), trace: span.spanContext().traceId, decision: decision.kind }, 'routing');
  if (decision.kind === 'rejected') {
    failSpan(span, decision.event.reason, decision.event.detail);
    const event = outgoing('JobRejected', decision.event, {
      ...about,
      subject: subjects.job('rejected', job),
    });
    await endJob(bus, parts.states, job, event, (entry) => entry.state === 'open');
    return;
  }
  const where = { runtime: decision.event.runtime, deviceClass: decision.event.deviceClass };
  span.setAttributes({ 'sandbus.runtime': where.runtime, 'sandbus.device_class': where.deviceClass });
  const entry = await placeOf(parts, job, { where, turn, sequence: cause.sequence });
  if (await republish(bus, entry)) return;
  if (entry.runtime === null) {
    span.setAttribute('sandbus.held', true);
    log.info(
      { job: kvKey(job), concurrency: entry.concurrency },
      'held: enough jobs of its tenant are under way',
    );
    return;
  }
  const subject = subjects.work(where, job);
  await publishEvent(bus, outgoing('JobRouted', decision.event, { ...about, subject }));
  bus.notify(subjects.wake(where));
}

/** Gives the job its route when there is a place for it, else notes that it is held. Returns the entry as it is then. */
async function placeOf(
  { states, admission }: RouterParts,
  job: JobVerified,
  { where, turn, sequence }: { where: Route; turn: Turn; sequence: number },
): Promise<JobEntry> {
  try {
    const { snapshot } = await states.change(job, (entry) => {
      if (entry.state !== 'open' || entry.runtime !== null) return null;
      if (turn === 'held' || (entry.held === null && admission.enter(entry))) return withRoute(entry, where);
      return entry.held === null ? { ...entry, held: sequence } : null;
    });
    // What it is otherwise, the watch of KV tells.
    if (snapshot.entry.state === 'ended') admission.forget(kvKey(job));
    return snapshot.entry;
  } catch (error) {
    // A new job is delivered again and takes its place then; a held one keeps it.
    if (turn === 'new') admission.forget(kvKey(job));
    throw error;
  }
}

/** Ends a job that could not be routed although it was tried again and again. */
export async function rejectExhausted(parts: RouterParts, delivery: Delivery, detail: string): Promise<void> {
  const { bus, clock } = parts.context;
  const job = readServiceEvent(bus, 'JobVerified', delivery);
  const cause = asCause(delivery);
  const rejected = rejection(job, clock.nowMs(), 'RETRIES_EXHAUSTED', detail, job.plugin);
  const event = outgoing('JobRejected', rejected, {
    subject: subjects.job('rejected', job),
    id: eventId(service, 'rejected', cause, job),
    cause,
    traceparent: delivery.headers[headerNames.traceparent] ?? null,
  });
  await endJob(bus, parts.states, job, event, (entry) => entry.state === 'open');
}

/** Handles one JobCancelRequested. */
export async function handleCancel(parts: RouterParts, delivery: StreamMessage): Promise<void> {
  const { telemetry } = parts.context;
  const request = readJobEvent('JobCancelRequested', delivery);
  const snapshot = await parts.states.read(request);
  // The submission may be right behind; after enough deliveries the loop keeps the request as a dead letter.
  if (snapshot === null)
    throw new OperationalError('NO_SUCH_JOB', `no job ${kvKey(request)} (yet)`, { retryMs: 250 });
  const options = {
    kind: SpanKind.CONSUMER,
    parent: snapshot.entry.traceparent,
    links: [delivery.headers[headerNames.traceparent]],
    attributes: {
      ...messagingAttributes('process', 'job.cancel-requested'),
      'sandbus.job.id': request.jobId,
      'sandbus.tenant': request.tenant,
    },
  };
  await telemetry.within('cancel', options, (span) => cancel(parts, delivery, { request, snapshot, span }));
}

interface Cancelling {
  readonly request: JobCancelRequested & JobRef;
  readonly snapshot: JobSnapshot;
  readonly span: Span;
}

async function cancel(parts: RouterParts, delivery: StreamMessage, { request, snapshot, span }: Cancelling) {
  const { bus, clock, log } = parts.context;
  const decision = decideCancel(snapshot.entry, request, clock.nowMs());
  span.setAttribute('sandbus.decision', decision.kind);
  log.info(
    { job: kvKey(request), decision: decision.kind, requestedBy: request.requestedBy },
    'cancel request',
  );
  // Perhaps by this very request, by a router that died before it could say so.
  if (decision.kind === 'too-late') return void (await republish(bus, snapshot.entry));
  if (decision.kind === 'ask-executor') {
    const asked = await parts.states.replace(snapshot, { ...snapshot.entry, cancel: decision.cancel });
    if (asked === null) throw new OperationalError('CONTENTION', 'the job has just changed', { retryMs: 20 });
    bus.notify(subjects.cancelNotice(snapshot.entry.executor ?? ''), Buffer.from(kvKey(request)));
    return;
  }
  const cause = asCause(delivery);
  const event = outgoing('JobCancelled', decision.event, {
    subject: subjects.job('cancelled', request),
    id: eventId(service, 'cancelled', cause, request),
    cause,
    traceparent: traceparentOf(span),
  });
  const ended = await endJob(bus, parts.states, request, event, (entry) => entry.state !== 'started');
  if (ended === null) throw new OperationalError('CONTENTION', 'the job has just started', { retryMs: 20 });
}
