/** How a job ended, told to people in a sentence and to machines as one object. */
import { constants } from 'node:os';
import type { GapItem, JobFinished, JobRejected, JobResult } from '../client/index.ts';
// Not by way of its index, which loads the cryptography too.
import { adviceFor, REJECT_REASONS } from '../trust/reasons.ts';
import { formatBytes, formatMs } from './quantities.ts';

/** Outcomes as the documentation writes them; Avro names have no hyphens. */
export const outcomeOf = (result: JobResult): string =>
  result.kind === 'finished' ? result.event.outcome.replaceAll('_', '-') : result.kind;

export const cpuMsOf = ({ usage }: JobFinished): number => (usage.userMicros + usage.systemMicros) / 1000;

export const denialsOf = ({ denials }: JobFinished): number =>
  denials.reduce((sum, { count }) => sum + count, 0);

/** Refused system calls by name, each once. */
export const deniedNames = ({ denials }: JobFinished): string[] => [
  ...new Set(denials.map(({ syscall }) => syscall)),
];

/** Trace id of a W3C traceparent. */
export const traceIdOf = (traceparent: string | null): string | null => traceparent?.split('-')[1] ?? null;

/** Why the job did not simply run and exit; null when it did. */
export function explain(result: JobResult): string | null {
  if (result.kind === 'rejected') return explainRejected(result.event);
  if (result.kind === 'cancelled') return `cancelled before it started: ${result.event.reason}`;
  return explainFinished(result.event);
}

/** The code, what was wrong, and what to do; the detail of some services says that already. */
function explainRejected({ stage, reason, detail }: JobRejected): string {
  const known = REJECT_REASONS.find((code) => code === reason);
  const advice = known === undefined ? '' : adviceFor(known);
  const what = detail.includes(advice) ? detail : `${detail}. ${advice}`;
  return `rejected by the ${stage}: ${reason}: ${what}`;
}

function explainFinished(finished: JobFinished): string | null {
  const { outcome, usage, signal, error } = finished;
  switch (outcome) {
    case 'exited':
      return null;
    case 'signaled':
      return `the plugin was ended by signal ${signal} (${signalName(signal)})`;
    case 'wall_time_exceeded':
      return `the plugin exceeded its wall-clock limit; it ran for ${formatMs(usage.wallMicros / 1000)}`;
    case 'cpu_time_exceeded':
      return `the plugin exceeded its CPU time; it used ${formatMs(cpuMsOf(finished))}`;
    case 'memory_exceeded':
      return usage.peakMemoryBytes === null
        ? 'the plugin exceeded its memory limit'
        : `the plugin exceeded its memory limit; its peak was ${formatBytes(usage.peakMemoryBytes)}`;
    case 'output_exceeded':
      return `the plugin exceeded its output limit; it wrote ${formatBytes(finished.stdout.totalBytes)} and ${formatBytes(finished.stderr.totalBytes)}`;
    case 'syscall_denied':
      return `the plugin was ended because of a refused system call: ${deniedNames(finished).join(', ')}`;
    case 'cancelled':
      return because('the job was cancelled while it ran', error);
    case 'setup_failed':
      return because(`the sandbox could not be built (${error?.step})`, error);
    case 'executor_lost':
      return because('the executor was lost', error);
  }
}

/** Whoever ended the job, or could not run it, said why, and what to do. Nobody did where its submitter asked for its end. */
function because(what: string, error: JobFinished['error']): string {
  if (error === null) return what;
  const { message, mend } = error;
  return `${what}: ${message}. ${mend.charAt(0).toUpperCase()}${mend.slice(1)}`.trim();
}

function signalName(signal: number | null): string {
  return Object.entries(constants.signals).find(([, number]) => number === signal)?.[0] ?? 'real-time';
}

/** One object for `--json`, with the same fields for every kind of end. */
export function resultJson(result: JobResult): Record<string, unknown> {
  const finished = result.kind === 'finished' ? result.event : null;
  const rejected = result.kind === 'rejected' ? result.event : null;
  return {
    jobId: result.event.jobId,
    traceId: traceIdOf(result.record.traceparent),
    outcome: outcomeOf(result),
    reason: rejected?.reason ?? finished?.error?.step ?? null,
    detail: explain(result),
    exitCode: finished?.exitCode ?? null,
    signal: finished?.signal ?? null,
    attempt: finished?.attempt ?? null,
    runtime: finished?.runtime ?? null,
    wallMs: finished === null ? null : finished.usage.wallMicros / 1000,
    cpuMs: finished === null ? null : cpuMsOf(finished),
    peakMemoryBytes: finished?.usage.peakMemoryBytes ?? null,
    denied: finished === null ? null : denialsOf(finished),
    filterDigest: finished?.sandbox.filterDigest ?? null,
    stdout: finished === null ? null : streamJson(finished.stdout),
    stderr: finished === null ? null : streamJson(finished.stderr),
    artifacts: finished?.artifacts ?? [],
    skippedOutputs: finished?.skippedOutputs ?? [],
  };
}

/** The first bytes as text where they are UTF-8 text, else as Base64. */
function streamJson(stream: JobFinished['stdout']) {
  const { inline, totalBytes, keptBytes, sha256, truncated } = stream;
  return { totalBytes, keptBytes, sha256, truncated, ...textOrBase64(inline) };
}

function textOrBase64(bytes: Uint8Array): { text: string } | { base64: string } {
  try {
    return { text: new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes) };
  } catch {
    return { base64: Buffer.from(bytes).toString('base64') };
  }
}

export function describeGap({ missingBytes, stream, offset }: GapItem): string {
  return `${missingBytes} bytes of ${stream} at offset ${offset} are lost: they are not kept any more`;
}

/** Whoever gives an id again gets that job, and its output, not a new one. */
export function describeDuplicate({ jobId }: { readonly jobId: string }): string {
  return `sandbus: job ${jobId} was submitted before; this changed nothing`;
}
