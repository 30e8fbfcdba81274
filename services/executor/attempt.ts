/**
 * One attempt, from a job that is claimed to its terminal event: fetch and verify again, say that it starts, run, store
 * the outputs, end the job.
 */
import type { JobFinished, JobRejected, JobRouted, Sandbox } from '../../schemas/generated/events.ts';
import { toMicros } from '../platform/clock.ts';
import { encode } from '../platform/codec.ts';
import { OperationalError } from '../platform/errors.ts';
import type { OutgoingEvent } from '../platform/events.ts';
import { outgoing, publishEvent, publishSigned } from '../platform/events.ts';
import type { JobEntry } from '../platform/job-state.ts';
import { endJob } from '../platform/job-state.ts';
import type { Span } from '../platform/telemetry.ts';
import { failSpan, traceparentOf } from '../platform/telemetry.ts';
import type { Cause, JobRef } from '../platform/topology.ts';
import { eventId, kvKey, subjects, terminalEventBytes } from '../platform/topology.ts';
import type { Rejection, Trusted, TrustedRun } from '../trust/index.ts';
import { decideTrust } from '../trust/index.ts';
import { storeOutputs } from './artifacts.ts';
import type { StopReason } from './decide.ts';
import { refuseStart, trustRequestOf } from './decide.ts';
import { finishedFromResult, finishedWithoutResult, fitted } from './finished.ts';
import { insist } from './insist.ts';
import type { LauncherEnd } from './launcher.ts';
import type { LauncherJob } from './launcher-options.ts';
import { jobEnvironment, refuseStrings } from './launcher-options.ts';
import type { Lease } from './lease.ts';
import { LeaseLost } from './lease.ts';
import { LogStreams } from './log-stream.ts';
import { OutputTap } from './output-tap.ts';
import type { ExecutorParts } from './parts.ts';
import { describeEnd, recordRun } from './spans.ts';
import type { AttemptFolder } from './work-folder.ts';

const service = 'executor';

export interface Attempt {
  readonly job: JobRouted & JobRef;
  readonly cause: Cause;
  readonly span: Span;
  readonly lease: Lease;
  /** Its abort, with a StopReason, ends the attempt before its time. */
  readonly stop: AbortSignal;
  /** Told what the permission to run rests on, so that a revocation can take it back. */
  readonly onTrusted: (run: TrustedRun) => void;
}

/** Throws OperationalError when the job has not ended and its message must come again. */
export async function runAttempt(parts: ExecutorParts, attempt: Attempt): Promise<void> {
  const { job, lease } = attempt;
  const folder = await parts.folders.forAttempt(job, lease.entry.attempt + 1);
  try {
    const prepared = await prepare(parts, attempt, folder);
    if (!prepared.ok) return await endRejected(parts, attempt, prepared);
    attempt.onTrusted({ pluginSha256: job.plugin.sha256, keyIds: prepared.trust.keyIds });
    failIfStopped(attempt);
    await lease.start();
    await publishStarted(parts, attempt);
    await endFinished(parts, attempt, await run(parts, attempt, prepared, folder));
  } finally {
    await folder.remove();
  }
}

const stopReasonOf = (stop: AbortSignal): StopReason | null =>
  stop.aborted ? (stop.reason as StopReason) : null;

/** Before the start an ended attempt leaves no trace: the message comes again, to whoever can take it. */
function failIfStopped({ stop }: Attempt): void {
  const reason = stopReasonOf(stop);
  if (reason?.kind === 'lease-lost') throw new LeaseLost(reason.message);
  if (reason?.kind === 'shutdown') throw new OperationalError('STOPPING', 'this executor is being stopped');
}

interface Prepared {
  readonly ok: true;
  readonly trust: Trusted;
  readonly inputs: LauncherJob['inputs'];
  readonly stdinPath: string | null;
}

/** Verifies again, with this executor's own store and policy, and brings everything that the job needs to this host. */
async function prepare(
  parts: ExecutorParts,
  attempt: Attempt,
  folder: AttemptFolder,
): Promise<Prepared | Rejection> {
  const { job, lease } = attempt;
  const malformed = refuseStrings(job);
  if (malformed !== null) return malformed;
  const unavailable = await placeContent(parts, job, folder);
  if (unavailable !== null) return { ok: false, reason: 'PLUGIN_UNAVAILABLE', detail: unavailable };
  // After the fetch, which may take its time: this is the last word before the start.
  const { store: trustStore, problem: trustStoreProblem } = await parts.trust.current();
  const nowMs = parts.context.clock.nowMs();
  const facts = { now: nowMs, trustStore, trustStoreProblem, policy: parts.policy.current() };
  const trust = decideTrust(trustRequestOf(job), facts, parts.memory);
  const refusal = refuseStart(lease.entry, { nowMs, trust });
  if (refusal !== null) return refusal;
  if (!trust.ok) return trust;
  const inputs = job.spec.inputs.map(({ name }, index) => ({ name, path: folder.input(index) }));
  return { ok: true, trust, inputs, stdinPath: job.spec.stdin === null ? null : folder.stdin };
}

async function placeContent(
  parts: ExecutorParts,
  job: JobRouted & JobRef,
  folder: AttemptFolder,
): Promise<string | null> {
  const { tenant } = job;
  const { stdin, inputs } = job.spec;
  const wanted = [
    { what: `plugin ${job.plugin.name}`, content: job.plugin, target: folder.plugin },
    ...(stdin === null ? [] : [{ what: 'standard input', content: stdin, target: folder.stdin }]),
    ...inputs.map(({ name, content }, index) => ({
      what: `input ${JSON.stringify(name)}`,
      content,
      target: folder.input(index),
    })),
  ];
  for (const { what, content, target } of wanted) {
    const unavailable = await parts.content.place({ ...content, tenant }, target);
    if (unavailable !== null) return `${what}: ${unavailable}`;
  }
  return null;
}

function sandboxOf(parts: ExecutorParts, job: JobRouted): Sandbox {
  const { filterDigest, namespaces, cgroup, landlockAbi } = parts.host;
  const { network } = job.spec;
  const gpu = job.deviceClass === 'gpu' ? parts.inventory.gpu : null;
  return {
    filterDigest,
    namespaces: namespaces.filter((name) => network === 'none' || name !== 'network'),
    cgroup,
    landlockAbi,
    uid: null,
    network,
    devices: (gpu?.devices ?? []).map(({ path }) => path),
  };
}

/** Nothing runs unrecorded: this is confirmed by the bus before the launcher starts. */
async function publishStarted(parts: ExecutorParts, attempt: Attempt): Promise<void> {
  const { job, lease, stop } = attempt;
  const number = lease.entry.attempt;
  const event = outgoing(
    'JobStarted',
    {
      tenant: job.tenant,
      jobId: job.jobId,
      startedAt: toMicros(parts.context.clock.nowMs()),
      attempt: number,
      executor: parts.config.id,
      runtime: job.runtime,
      deviceClass: job.deviceClass,
      sandbox: sandboxOf(parts, job),
      limits: job.spec.limits,
    },
    aboutEvent(attempt, subjects.job('started', job), `started-${number}`),
  );
  const giveUp = AbortSignal.any([stop, parts.giveUp]);
  await insist({ what: 'job.started', log: parts.context.log, giveUp }, () =>
    publishEvent(parts.context.bus, event),
  );
}

function aboutEvent({ cause, span, job }: Attempt, subject: string, what: string) {
  return { subject, id: eventId(service, what, cause, job), cause, traceparent: traceparentOf(span) };
}

/** Runs the plugin and returns how it finished. */
async function run(
  parts: ExecutorParts,
  attempt: Attempt,
  prepared: Prepared,
  folder: AttemptFolder,
): Promise<JobFinished> {
  const { job, lease, span, stop } = attempt;
  const { bus, clock, log, telemetry } = parts.context;
  const logs = new LogStreams({
    job,
    attempt: lease.entry.attempt,
    clock,
    log,
    publish: async (chunk) => {
      const id = eventId(
        service,
        `log-${chunk.attempt}-${chunk.stream}-${chunk.sequence}`,
        attempt.cause,
        job,
      );
      await publishSigned(bus, subjects.log(job, chunk.stream), id, encode('LogChunk', chunk));
    },
  });
  const startMs = clock.nowMs();
  const end = stop.aborted
    ? neverRan()
    : await parts.launcher.run(
        launcherJob(parts, attempt, prepared, folder),
        { onOutput: (stream, bytes) => logs.write(stream, bytes) },
        stop,
      );
  recordRun(telemetry, { parent: span, startMs, job }, end);
  const files = end.kind === 'result' ? end.result.outputs.files : [];
  const [outputs] = await Promise.all([
    telemetry.within('collect', { parent: span, attributes: { 'sandbus.artifacts': files.length } }, () =>
      storeOutputs(
        files,
        { folder: folder.out, tenant: job.tenant, bucket: parts.artifacts },
        { what: 'artifacts', log, giveUp: parts.giveUp },
      ),
    ),
    logs.close(),
  ]);
  return finishedEvent(parts, attempt, end, outputs);
}

function launcherJob(
  parts: ExecutorParts,
  { job, span }: Attempt,
  { trust, inputs, stdinPath }: Prepared,
  folder: AttemptFolder,
): LauncherJob {
  const { interpreters, gpu } = parts.inventory;
  return {
    limits: trust.limits,
    plugin: { path: folder.plugin, name: job.plugin.name, sha256: job.plugin.sha256 },
    interpreter: job.runtime === 'native' ? null : (interpreters.get(job.runtime) ?? null),
    args: job.spec.args,
    env: jobEnvironment(job, trust.limits, traceparentOf(span)),
    stdinPath,
    inputs,
    collectFolder: folder.out,
    gpu: job.deviceClass === 'gpu' ? gpu : null,
    network: trust.network,
  };
}

/** Stopped between the start and the launcher. */
function neverRan(): LauncherEnd {
  const nothing = () => new OutputTap().seen();
  const message = 'the job was ended before its plugin had started';
  return { kind: 'silent', mayHaveRun: false, message, stdout: nothing(), stderr: nothing() };
}

function finishedEvent(
  parts: ExecutorParts,
  { job, lease, stop }: Attempt,
  end: LauncherEnd,
  outputs: Awaited<ReturnType<typeof storeOutputs>>,
): JobFinished {
  const facts = {
    job,
    attempt: lease.entry.attempt,
    executor: parts.config.id,
    finishedAtMs: parts.context.clock.nowMs(),
  };
  const reason = stopReasonOf(stop);
  const event =
    end.kind === 'result'
      ? finishedFromResult(
          facts,
          end.result,
          { stdoutHead: end.stdout.head, stderrHead: end.stderr.head, ...outputs },
          reason,
        )
      : finishedWithoutResult(facts, end, reason, sandboxOf(parts, job));
  return fitted(event, (candidate) => encode('JobFinished', candidate).length, terminalEventBytes);
}

async function endRejected(parts: ExecutorParts, attempt: Attempt, refusal: Rejection): Promise<void> {
  const { job, span } = attempt;
  failSpan(span, refusal.reason, refusal.detail);
  parts.context.log.warn({ job: kvKey(job), reason: refusal.reason, detail: refusal.detail }, 'rejected');
  const event: JobRejected = {
    tenant: job.tenant,
    jobId: job.jobId,
    rejectedAt: toMicros(parts.context.clock.nowMs()),
    stage: service,
    reason: refusal.reason,
    detail: refusal.detail,
    pluginName: job.plugin.name,
    pluginSha256: job.plugin.sha256,
  };
  const about = aboutEvent(attempt, subjects.job('rejected', job), 'rejected');
  if ((await end(parts, attempt, outgoing('JobRejected', event, about))) === null) throw lost(attempt);
}

/** Ends the job with this result, or records the result as superseded when something else has ended the job. */
async function endFinished(parts: ExecutorParts, attempt: Attempt, finished: JobFinished): Promise<void> {
  const { job, lease, span, stop } = attempt;
  describeEnd(span, finished);
  const { attempt: number, maxAttempts } = lease.entry;
  // With attempts left, a lost lease is not the end of the job: whoever takes it over starts the next attempt.
  const mayEnd = stopReasonOf(stop)?.kind !== 'lease-lost' || number >= maxAttempts;
  const about = aboutEvent(attempt, subjects.job('finished', job), `finished-${number}`);
  const ended = mayEnd ? await end(parts, attempt, outgoing('JobFinished', finished, about)) : null;
  const { outcome, exitCode } = finished;
  parts.context.log.info({ job: kvKey(job), outcome, exitCode, ours: ended?.ours ?? false }, 'finished');
  if (ended?.ours === true) return;
  await publishSuperseded(parts, attempt, finished);
  if (ended === null) throw lost(attempt);
}

async function publishSuperseded(
  parts: ExecutorParts,
  attempt: Attempt,
  finished: JobFinished,
): Promise<void> {
  const about = aboutEvent(
    attempt,
    subjects.job('superseded', attempt.job),
    `superseded-${finished.attempt}`,
  );
  const event = outgoing('JobFinished', { ...finished, superseded: true }, about);
  await insist({ what: 'job.superseded', log: parts.context.log, giveUp: parts.giveUp }, () =>
    publishEvent(parts.context.bus, event),
  );
}

/** Null when the job is somebody else's now, and runs. */
function end(parts: ExecutorParts, { job, lease }: Attempt, terminal: OutgoingEvent) {
  const { bus, log } = parts.context;
  const held = lease.entry;
  // A renewal would only race with the end; while the bus is away neither comes through.
  lease.release();
  const mine = (entry: JobEntry) => entry.executor === held.executor && entry.attempt === held.attempt;
  return insist({ what: terminal.subject, log, giveUp: parts.giveUp }, () =>
    endJob(bus, parts.states, job, terminal, mine),
  );
}

function lost({ job, lease }: Attempt): LeaseLost {
  return new LeaseLost(`${kvKey(job)} is not ours any more (attempt ${lease.entry.attempt})`);
}
