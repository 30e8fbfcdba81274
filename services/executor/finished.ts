/** JobFinished from what the launcher said, or from the fact that it said nothing. Pure. */
import type {
  Artifact,
  JobFinished,
  JobRouted,
  Outcome,
  OutputStream,
  Refusal,
  Sandbox,
  SetupError,
  SkippedOutput,
} from '../../schemas/generated/events.ts';
import type { Accounts } from '../platform/no-account.ts';
import { noAccounts, noUsage } from '../platform/no-account.ts';
import type { JobRef } from '../platform/topology.ts';
import type { StopReason } from './decide.ts';
import type { LauncherResult } from './launcher-result.ts';

/** Bytes of each stream that travel inside the event. */
export const inlineOutputBytes = 64 * 1024;

/** An event that is too large keeps about so much of each. */
const leastInlineBytes = 4 * 1024;

/** Whose end this is. */
export interface AttemptFacts {
  readonly job: JobRouted & JobRef;
  readonly attempt: number;
  readonly executor: string;
  readonly finishedAtMs: number;
}

/** What the executor itself saw of an attempt. */
export interface Outputs {
  readonly stdoutHead: Uint8Array;
  readonly stderrHead: Uint8Array;
  readonly artifacts: readonly Artifact[];
  readonly skipped: readonly SkippedOutput[];
}

type EndedAttempt = Omit<JobFinished, keyof ReturnType<typeof identityOf>>;

function identityOf(facts: AttemptFacts) {
  const { job } = facts;
  return {
    tenant: job.tenant,
    jobId: job.jobId,
    finishedAt: Math.round(facts.finishedAtMs * 1000),
    attempt: facts.attempt,
    executor: facts.executor,
    runtime: job.runtime,
    deviceClass: job.deviceClass,
    superseded: false,
  };
}

/** The launcher gave a result. A job that we ended says why we did. */
export function finishedFromResult(
  facts: AttemptFacts,
  result: LauncherResult,
  outputs: Outputs,
  stop: StopReason | null,
): JobFinished {
  const ended: EndedAttempt = {
    outcome: outcomeOf(result, stop),
    exitCode: result.exitCode,
    signal: result.signal,
    error: result.outcome === 'cancelled' ? (stopError(stop) ?? result.error) : result.error,
    usage: usageOf(result),
    stdout: streamOf(result.stdout, outputs.stdoutHead),
    stderr: streamOf(result.stderr, outputs.stderrHead),
    ...accountsOf(result),
    artifacts: outputs.artifacts,
    skippedOutputs: [...result.outputs.skipped, ...outputs.skipped],
    sandbox: sandboxOf(result),
    setupMicros: result.timings,
  };
  return { ...identityOf(facts), ...ended };
}

function outcomeOf(result: LauncherResult, stop: StopReason | null): Outcome {
  if (result.outcome === 'cancelled' && stop?.kind === 'lease-lost') return 'executor_lost';
  return result.outcome.replaceAll('-', '_') as Outcome;
}

/** The launcher cannot know why it was told to stop. */
function stopError(stop: StopReason | null): SetupError | null {
  const about = (step: string, message: string, mend: string) => ({ step, errno: null, message, mend });
  switch (stop?.kind) {
    case 'shutdown':
      return about(
        'executor-shutdown',
        'the executor was stopped and the job did not end within its grace time',
        'submit the job again; a longer SANDBUS_GRACE_MS lets jobs run on for longer',
      );
    case 'lease-lost':
      return about('lease', stop.message, 'submit the job again; maxAttempts above 1 does so by itself');
    case 'revoked':
      return about(
        'revoked',
        stop.message,
        'sign the plugin with a key in good standing, or repair the plugin',
      );
    case 'cancel':
      return null;
    case undefined:
      return about(
        'launcher',
        'the launcher was told to stop by somebody else, or had not ended long after its wall clock limit',
        'see the log of the executor, then submit the job again',
      );
  }
}

function usageOf({ usage, stdin, oomKills, oomVictims }: LauncherResult): JobFinished['usage'] {
  return {
    wallMicros: micros(usage.wallMs),
    userMicros: micros(usage.userMs),
    systemMicros: micros(usage.systemMs),
    peakMemoryBytes: usage.peakMemoryBytes,
    peakProcesses: usage.peakProcesses,
    throttledMicros: micros(usage.throttledMs),
    stdinBytes: stdin.bytes,
    oomKills,
    oomVictims,
  };
}

const micros = (ms: number): number => Math.round(ms * 1000);

function streamOf(said: LauncherResult['stdout'], inline: Uint8Array): OutputStream {
  const { bytes: totalBytes, kept: keptBytes, sha256, truncated } = said;
  return { inline, totalBytes, keptBytes, sha256, truncated };
}

function accountsOf(result: LauncherResult): Accounts {
  const { syscalls, executions, devices } = result;
  return {
    syscalls: syscalls.available
      ? { available: true, unavailableReason: null, total: syscalls.total, counts: syscalls.counts }
      : noAccounts(syscalls.reason).syscalls,
    denials: result.denials as readonly Refusal[],
    probes: result.probes as readonly Refusal[],
    executions: executions.available
      ? {
          available: true,
          unavailableReason: null,
          dropped: executions.dropped,
          entries: executions.entries.map(({ path, interpreter, atMs }) => ({
            path,
            interpreter,
            atMicros: micros(atMs),
          })),
        }
      : noAccounts(executions.reason).executions,
    devices: devices.available
      ? { available: true, unavailableReason: null, accesses: devices.accesses }
      : noAccounts(devices.reason).devices,
  };
}

function sandboxOf(result: LauncherResult): Sandbox {
  const { namespaces, cgroup, landlockAbi, uid, network } = result.sandbox;
  const devices = result.devices.available ? result.devices.granted : [];
  return { filterDigest: result.filterDigest, namespaces, cgroup, landlockAbi, uid, network, devices };
}

/** What came through to the executor of one stream. */
export interface SeenOutput {
  readonly head: Uint8Array;
  readonly bytes: number;
  readonly sha256: string;
}

/** A launcher that said nothing that can be read. */
export interface SilentEnd {
  /** User code may have been running, and died with the launcher. */
  readonly mayHaveRun: boolean;
  readonly message: string;
  readonly stdout: SeenOutput;
  readonly stderr: SeenOutput;
}

/** An end without a result: nothing ran, or what ran took its account with it. */
export function finishedWithoutResult(
  facts: AttemptFacts,
  end: SilentEnd,
  stop: StopReason | null,
  sandbox: Sandbox,
): JobFinished {
  return {
    ...identityOf(facts),
    outcome: silentOutcome(end, stop),
    exitCode: null,
    signal: null,
    error: stop === null ? launcherError(end) : stopError(stop),
    usage: noUsage,
    stdout: seenStream(end.stdout),
    stderr: seenStream(end.stderr),
    ...noAccounts(end.message),
    artifacts: [],
    skippedOutputs: [],
    sandbox,
    setupMicros: {},
  };
}

/** Whether user code ran decides: a set-up that failed and a plugin that was lost never share an outcome. */
function silentOutcome(end: SilentEnd, stop: StopReason | null): Outcome {
  if (stop !== null) return stop.kind === 'lease-lost' ? 'executor_lost' : 'cancelled';
  return end.mayHaveRun ? 'executor_lost' : 'setup_failed';
}

function launcherError({ mayHaveRun, message }: SilentEnd): SetupError {
  const mend = mayHaveRun
    ? 'look for a crash or an out-of-memory kill of the launcher in the log of the kernel, then submit the job again'
    : 'run `sandbus doctor` on the machine of the executor';
  return { step: 'launcher', errno: null, message, mend };
}

/** The account of what was written is lost: where something came through, more may have been written. */
function seenStream({ head, bytes, sha256 }: SeenOutput): OutputStream {
  return { inline: head, totalBytes: bytes, keptBytes: bytes, sha256, truncated: bytes > 0 };
}

/**
 * Makes an event fit: long lists of executed programs, of what was not kept and of refusals are halved until it does,
 * then what is inline of the outputs (the log chunks have all of it), and at last the list of artifacts. What is
 * dropped is counted, or named as not recorded.
 */
export function fitted(
  event: JobFinished,
  sizeOf: (event: JobFinished) => number,
  limit: number,
): JobFinished {
  let fitting = event;
  while (sizeOf(fitting) > limit) {
    const shorter = shorten(fitting);
    if (shorter === null) return fitting;
    fitting = shorter;
  }
  return fitting;
}

function shorten(event: JobFinished): JobFinished | null {
  const { executions, skippedOutputs, probes, denials } = event;
  const half = (list: readonly unknown[]) => Math.floor(list.length / 2);
  if (executions.entries.length > 0) {
    const entries = executions.entries.slice(0, half(executions.entries));
    const dropped = executions.dropped + executions.entries.length - entries.length;
    return { ...event, executions: { ...executions, entries, dropped } };
  }
  if (skippedOutputs.length > 1) {
    const kept = skippedOutputs.slice(0, Math.floor((skippedOutputs.length - 1) / 2));
    return { ...event, skippedOutputs: [...kept, { name: 'others', reason: 'record-too-large' }] };
  }
  if (probes.length > 0) return { ...event, probes: probes.slice(0, half(probes)) };
  if (denials.length > 1) return { ...event, denials: denials.slice(0, half(denials)) };
  return shortenOutputs(event);
}

function shortenOutputs(event: JobFinished): JobFinished | null {
  const { stdout, stderr, artifacts, skippedOutputs } = event;
  const halved = (stream: OutputStream): OutputStream => ({
    ...stream,
    inline: stream.inline.subarray(0, Math.floor(stream.inline.length / 2)),
  });
  if (stdout.inline.length + stderr.inline.length > 2 * leastInlineBytes)
    return { ...event, stdout: halved(stdout), stderr: halved(stderr) };
  if (artifacts.length === 0) return null;
  const note = { name: 'artifacts', reason: 'record-too-large' };
  return {
    ...event,
    artifacts: artifacts.slice(0, Math.floor(artifacts.length / 2)),
    skippedOutputs: [...skippedOutputs.filter(({ name }) => name !== note.name), note],
  };
}
