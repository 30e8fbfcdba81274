/**
 * Watches every job that has not ended: deadlines that pass without an executor, and executors that are lost. It learns
 * of jobs from the KV bucket itself, so that a restarted router forgets none.
 */
import { messageOf, OperationalError } from '../platform/errors.ts';
import type { OutgoingEvent } from '../platform/events.ts';
import { outgoing } from '../platform/events.ts';
import type { JobEntry, JobSnapshot } from '../platform/job-state.ts';
import { endJob, LeaseObserver } from '../platform/job-state.ts';
import type { Span } from '../platform/telemetry.ts';
import { failSpan, traceparentOf } from '../platform/telemetry.ts';
import { eventId, subjects } from '../platform/topology.ts';
import type { SuperviseDecision } from './decide.ts';
import { supervise } from './decide.ts';
import { Endings } from './endings.ts';
import type { RouterParts } from './handler.ts';
import { HeldJobs } from './held-jobs.ts';
import { Restoration } from './restore.ts';

const tickMs = 1_000;

export interface Supervisor {
  /** Rejects when a look at the jobs hit a bug. */
  readonly failed: Promise<never>;
  stop(): void;
}

export async function startSupervisor(parts: RouterParts): Promise<Supervisor> {
  const jobs = new Map<string, JobSnapshot>();
  const leases = new LeaseObserver(parts.context.clock);
  const endings = new Endings({ ...parts.context, states: parts.states });
  const held = new HeldJobs(parts);
  const bug = Promise.withResolvers<never>();
  bug.promise.catch(() => undefined);
  const restoration = new Restoration(parts, (key) => jobs.has(key));
  const onReset = () => {
    for (const key of jobs.keys()) {
      parts.admission.forget(key);
      leases.forget(key);
    }
    jobs.clear();
    endings.forgetAll();
    parts.context.log.error('the states of the jobs were deleted: they are restored from the bus');
    restoration.begin();
  };
  const letGo = () => void held.letGo().catch(bug.reject);
  const stopWatch = await parts.states.watch((key, snapshot) => {
    if (snapshot === null) parts.admission.forget(key);
    else {
      parts.admission.see(snapshot.entry);
    }
    if (snapshot === null || snapshot.entry.state === 'ended') {
      if (jobs.has(key)) letGo();
      jobs.delete(key);
      leases.forget(key);
      if (snapshot === null) endings.forget(key);
      else endings.see(snapshot);
    } else jobs.set(key, snapshot);
  }, onReset);
  // They may have been deleted while no router ran.
  restoration.begin();
  // A router that died after it had let a held job go may not have come to say so.
  for (const [key, { entry }] of jobs)
    if (entry.state === 'open' && entry.runtime !== null && entry.held !== null)
      await held.sayAgain(key, entry.held);
  let ticking = false;
  const timer = setInterval(() => {
    if (ticking) return;
    ticking = true;
    const work = tick(parts, jobs, leases).then(() =>
      Promise.all([settle(parts, endings, restoration), held.letGo()]),
    );
    void work.catch(bug.reject).finally(() => {
      ticking = false;
    });
  }, tickMs);
  return {
    failed: bug.promise,
    stop: () => {
      clearInterval(timer);
      stopWatch();
    },
  };
}

async function tick(
  parts: RouterParts,
  jobs: Map<string, JobSnapshot>,
  leases: LeaseObserver,
): Promise<void> {
  const { clock, log } = parts.context;
  for (const [key, snapshot] of jobs) {
    const unchangedMs = leases.unchangedMs(snapshot);
    const decision = supervise(snapshot.entry, {
      nowMs: clock.nowMs(),
      unchangedMs,
      leaseMs: parts.config.leaseMs,
    });
    if (decision === null) continue;
    try {
      await end(parts, snapshot, decision);
      log.warn({ job: key, outcome: decision.kind }, 'ended by supervision');
    } catch (error) {
      log.warn({ job: key, error: messageOf(error) }, 'could not end the job; will try again');
    }
  }
}

async function settle(
  { context: { log } }: RouterParts,
  endings: Endings,
  restoration: Restoration,
): Promise<void> {
  try {
    await endings.tick();
    await restoration.tick();
  } catch (error) {
    if (!(error instanceof OperationalError)) throw error;
    log.warn(
      { code: error.code, error: error.message },
      'could not look after ended or lost states; will try again',
    );
  }
}

/** Ends the job as it was seen: an entry that has changed meanwhile is looked at again at the next tick. */
async function end(parts: RouterParts, seen: JobSnapshot, decision: SuperviseDecision): Promise<void> {
  const span = failedSpan(parts, seen.entry, decision);
  const event = terminalEvent(seen.entry, decision, traceparentOf(span));
  const same = (entry: JobEntry) => entry.state === seen.entry.state && entry.beat === seen.entry.beat;
  const ended = await endJob(parts.context.bus, parts.states, seen.entry, event, same);
  // A span that does not end is not exported: nothing failed where the job went on.
  if (ended?.ours === true) span.end();
}

/** An executor that is lost says no more, and a deadline that passed has no other span to stand on. */
function failedSpan({ context }: RouterParts, entry: JobEntry, decision: SuperviseDecision): Span {
  const attributes = { 'sandbus.job.id': entry.jobId, 'sandbus.tenant': entry.tenant };
  const span = context.telemetry.span('supervise', { parent: entry.traceparent, attributes });
  if (decision.kind === 'rejected') failSpan(span, decision.event.reason, decision.event.detail);
  else failSpan(span, decision.event.outcome.replaceAll('_', '-'), decision.event.error?.message ?? '');
  return span;
}

function terminalEvent(entry: JobEntry, decision: SuperviseDecision, traceparent: string): OutgoingEvent {
  const cause = { stream: 'SUBMISSIONS', sequence: entry.submissionSequence };
  const about = {
    subject: subjects.job(decision.kind, entry),
    id: eventId('router', decision.kind, cause, entry),
    cause,
    traceparent,
  };
  return decision.kind === 'rejected'
    ? outgoing('JobRejected', decision.event, about)
    : outgoing('JobFinished', decision.event, about);
}
