/**
 * Is a submission in the documented form? Checked before anything is spent on it. The Avro schema bounds the types;
 * this bounds the values: what execve, the file system and the clocks behind them could not take.
 */
import type { Content, JobSubmitted } from '../../schemas/generated/events.ts';
import { toMs } from '../platform/clock.ts';
import { inlineBytes, isSha256 } from '../platform/topology.ts';

/** execve takes at most 128 KiB in one string, and two MiB in all, by default (execve(2), MAX_ARG_STRLEN). */
const maxStringBytes = 128 * 1024 - 1;
const maxArgumentBytes = 1024 * 1024;
const maxInputs = 256;
const maxLabels = 64;
const maxLabelBytes = 1024;
/** The state of a job is kept for seven days, so it must have ended well before. */
const maxDeadlineMs = 6 * 24 * 3_600_000;
const environmentName = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** The first fault as a sentence, or null. */
export function findFault(job: JobSubmitted, publishedAtMs: number): string | null {
  return (
    argumentFault(job) ??
    environmentFault(job) ??
    contentsFault(job) ??
    inputNamesFault(job) ??
    restFault(job, publishedAtMs)
  );
}

function argumentFault({ args, env }: JobSubmitted): string | null {
  for (const [index, arg] of args.entries()) {
    if (arg.includes('\0')) return `args[${index}] has a zero byte`;
    if (Buffer.byteLength(arg) > maxStringBytes)
      return `args[${index}] is longer than ${maxStringBytes} bytes`;
  }
  const strings = [...args, ...Object.entries(env).map(([name, value]) => `${name}=${value}`)];
  const total = strings.reduce((sum, text) => sum + Buffer.byteLength(text) + 9, 0);
  return total > maxArgumentBytes ? `args and env take ${total} bytes, at most ${maxArgumentBytes}` : null;
}

function environmentFault({ env }: JobSubmitted): string | null {
  for (const [name, value] of Object.entries(env)) {
    if (!environmentName.test(name))
      return `env name ${JSON.stringify(name.slice(0, 80))}: use A-Z, a-z, 0-9 and _, no digit first`;
    if (value.includes('\0')) return `env ${name} has a zero byte`;
    if (Buffer.byteLength(name) + Buffer.byteLength(value) > maxStringBytes - 1)
      return `env ${name} is too long`;
  }
  return null;
}

function contentsFault(job: JobSubmitted): string | null {
  const inputs = job.inputs.map(({ name, content }): [string, Content] => [
    `input ${JSON.stringify(name)}`,
    content,
  ]);
  const stdin: [string, Content][] = job.stdin === null ? [] : [['stdin', job.stdin]];
  const all: [string, Content][] = [['plugin', job.plugin.content], ...stdin, ...inputs];
  for (const [what, content] of all) {
    if (!isSha256(content.sha256)) return `${what}: sha256 must be 64 lower-case hex digits`;
    if (content.size < 0) return `${what}: size is negative`;
    if (content.inline !== null && content.inline.length !== content.size)
      return `${what}: size says ${content.size}, ${content.inline.length} bytes are there`;
    if ((content.inline?.length ?? 0) > inlineBytes)
      return `${what}: more than ${inlineBytes} bytes inline; upload it`;
  }
  return null;
}

function inputNamesFault({ inputs }: JobSubmitted): string | null {
  if (inputs.length > maxInputs) return `${inputs.length} input files, at most ${maxInputs}`;
  const seen = new Set<string>();
  for (const { name } of inputs) {
    const parts = name.split('/');
    const bad = parts.some(
      (part) => part === '' || part === '.' || part === '..' || Buffer.byteLength(part) > 255,
    );
    if (bad || name.includes('\0') || name.includes('=') || Buffer.byteLength(name) > 1024)
      return `input ${JSON.stringify(name.slice(0, 80))}: must be a relative path without "..", "." or "="`;
    if (seen.has(name)) return `input ${JSON.stringify(name.slice(0, 80))} is there twice`;
    seen.add(name);
  }
  return collision(seen);
}

/** A name that is a file for one input and a folder for another; `out` is the folder of the outputs. */
function collision(names: ReadonlySet<string>): string | null {
  for (const name of names) {
    const parts = name.split('/');
    const folders = parts.slice(1).map((_, index) => parts.slice(0, index + 1).join('/'));
    const file = name === 'out' ? name : folders.find((folder) => names.has(folder));
    if (file !== undefined)
      return `input ${JSON.stringify(file.slice(0, 80))}: a file cannot be there, since it is a folder`;
  }
  return null;
}

function restFault({ maxAttempts, deadline, labels }: JobSubmitted, publishedAtMs: number): string | null {
  if (maxAttempts < 1) return `maxAttempts is ${maxAttempts}, at least 1`;
  if (deadline !== null && toMs(deadline) > publishedAtMs + maxDeadlineMs)
    return `deadline is more than ${maxDeadlineMs / 86_400_000} days away`;
  const entries = Object.entries(labels);
  if (entries.length > maxLabels) return `${entries.length} labels, at most ${maxLabels}`;
  const long = entries.find(
    ([name, value]) => Buffer.byteLength(name) + Buffer.byteLength(value) > maxLabelBytes,
  );
  return long === undefined
    ? null
    : `label ${JSON.stringify(long[0].slice(0, 80))} is longer than ${maxLabelBytes} bytes`;
}
