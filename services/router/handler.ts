/** Routes verified jobs and answers cancel requests. */
import type { JobVerified } from '../../schemas/generated/events.ts';
import { OperationalError } from '../platform/errors.ts';
import { asCause, outgoing, publishEvent, readJobEvent } from '../platform/events.ts';
import type { JobStates } from '../platform/job-state.ts';
import { endJob, republish, withRoute } from '../platform/job-state.ts';
import type { Delivery } from '../platform/nats/bus.ts';
import type { ServiceContext } from '../platform/service.ts';
import type { Span } from '../platform/telemetry.ts';
import { failSpan, messagingAttributes, SpanKind, traceparentOf } from '../platform/telemetry.ts';
import { eventId, headerNames, kvKey, subjects } from '../platform/topology.ts';
import type { RouterConfig } from './config.ts';
import { decideCancel, decideRoute, rejection } from './decide.ts';

export interface RouterParts {
  readonly context: ServiceContext;
  readonly states: JobStates;
  readonly config: RouterConfig;
}

const service = 'router';

/** Handles one JobVerified. */
export async function handleVerified(parts: RouterParts, delivery: Delivery): Promise<void> {
  const { telemetry } = parts.context;
  const job = readJobEvent('JobVerified', delivery);
  const attributes = {
    ...messagingAttributes('process', 'job.verified'),
    'sandbus.job.id': job.jobId,
    'sandbus.tenant': job.tenant,
  };
  const options = { kind: SpanKind.CONSUMER, parent: delivery.headers[headerNames.traceparent], attributes };
  await telemetry.within('route', options, (span) => route(parts, job, delivery, span));
}

async function route(parts: RouterParts, job: JobVerified, delivery: Delivery, span: Span): Promise<void> {
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
  const { snapshot } = await parts.states.change(job, (entry) =>
    entry.state === 'open' && entry.runtime === null ? withRoute(entry, where) : null,
  );
  if (await republish(bus, snapshot.entry)) return;
  const subject = subjects.work(where, job);
  await publishEvent(bus, outgoing('JobRouted', decision.event, { ...about, subject }));
  bus.notify(subjects.wake(where));
}

/** Ends a job that could not be routed although it was tried again and again. */
export async function rejectExhausted(parts: RouterParts, delivery: Delivery, detail: string): Promise<void> {
  const { bus, clock } = parts.context;
  const job = readJobEvent('JobVerified', delivery);
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
export async function handleCancel(parts: RouterParts, delivery: Delivery): Promise<void> {
  const { bus, clock, log } = parts.context;
  const request = readJobEvent('JobCancelRequested', delivery);
  const snapshot = await parts.states.read(request);
  // The submission may be right behind; after enough deliveries the loop keeps the request as a dead letter.
  if (snapshot === null)
    throw new OperationalError('NO_SUCH_JOB', `no job ${kvKey(request)} (yet)`, { retryMs: 250 });
  const decision = decideCancel(snapshot.entry, request, clock.nowMs());
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
    traceparent: snapshot.entry.traceparent,
  });
  const ended = await endJob(bus, parts.states, request, event, (entry) => entry.state !== 'started');
  if (ended === null) throw new OperationalError('CONTENTION', 'the job has just started', { retryMs: 20 });
}
