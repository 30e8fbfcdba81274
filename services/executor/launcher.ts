/**
 * Drives the launcher: one process for each job. This file alone knows how a job gets to the launcher and its result
 * back; `launcher serve` will take this place without a change elsewhere.
 *
 * The launcher's descriptor 3 carries the result to us. It is also the lifeline: when this process dies its end closes,
 * and the launcher ends its job.
 */
import { createReadStream } from 'node:fs';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { messageOf, OperationalError } from '../platform/errors.ts';
import type { Child, Exit } from '../platform/process.ts';
import { readAll, runChild, startChild, stopChild } from '../platform/process.ts';
import type { SeenOutput } from './finished.ts';
import type { LauncherJob } from './launcher-options.ts';
import { launcherArguments } from './launcher-options.ts';
import type { HostReport, LauncherResult, SyscallList } from './launcher-result.ts';
import { parseHostReport, parseLauncherResult, parseSyscallList } from './launcher-result.ts';
import { OutputTap } from './output-tap.ts';

/** How a launcher ended. */
export type LauncherEnd = {
  readonly stdout: SeenOutput;
  readonly stderr: SeenOutput;
} & (
  | { readonly kind: 'result'; readonly result: LauncherResult }
  /** It said nothing that can be read. `mayHaveRun`: user code may have been running and died with it. */
  | { readonly kind: 'silent'; readonly mayHaveRun: boolean; readonly message: string }
);

export interface LauncherStreams {
  /** File of the standard input; null is empty. */
  readonly stdinPath: string | null;
  /** Resolves when it can take more: the job is slowed down meanwhile. */
  readonly onOutput: (stream: 'stdout' | 'stderr', bytes: Uint8Array) => Promise<void>;
}

/** The launcher's exit code when it could not set up. */
const setupFailedCode = 125;
/** A launcher that was told to stop kills the tree at once; one that takes this long is itself killed. */
const stopGraceMs = 10_000;
/** On top of the wall clock that the launcher itself keeps: setting up, collecting outputs, cleaning up. */
const overdueMs = 60_000;
const longestResultBytes = 4 * 1024 * 1024;

export class Launcher {
  readonly #program: string;

  constructor(program: string) {
    this.#program = program;
  }

  /** Runs one job to its end. An abort of `stop` ends it before its time. Never throws for what the job does. */
  async run(job: LauncherJob, streams: LauncherStreams, stop: AbortSignal): Promise<LauncherEnd> {
    const taps = { stdout: new OutputTap(), stderr: new OutputTap() };
    const seen = () => ({ stdout: taps.stdout.seen(), stderr: taps.stderr.seen() });
    let child: Child;
    try {
      const stdio = ['pipe', 'pipe', 'pipe', 'pipe'] as const;
      child = await startChild(this.#program, launcherArguments(job), { env: {}, stdio: [...stdio] });
    } catch (error) {
      return { ...seen(), kind: 'silent', mayHaveRun: false, message: messageOf(error) };
    }
    const relay = async (name: 'stdout' | 'stderr') => {
      for await (const chunk of child[name] ?? []) {
        taps[name].see(chunk);
        await streams.onOutput(name, chunk);
      }
    };
    const feeding = feed(child, streams.stdinPath);
    const forget = stopWhenAsked(child, stop, job.limits.wallMs + overdueMs);
    const [exit, text] = await Promise.all([
      child.exited,
      readResult(child.streams[3] as Readable),
      relay('stdout'),
      relay('stderr'),
    ]).finally(forget);
    await feeding;
    return { ...seen(), ...endOf(exit, text) };
  }

  /** What the kernel of this host gives, control by control. */
  async checkHost(): Promise<HostReport> {
    return this.#ask(['check-host', '--json'], parseHostReport);
  }

  /** The system calls that a plugin may make, and the digest of the filter. */
  async syscalls(): Promise<SyscallList> {
    return this.#ask(['syscalls', '--json'], parseSyscallList);
  }

  async #ask<T>(args: readonly string[], parse: (text: string) => T): Promise<T> {
    const { stdout, stderr } = await runChild(this.#program, args, {});
    try {
      return parse(stdout.toString('utf8'));
    } catch (cause) {
      const said = stderr.toString('utf8').trim().slice(0, 500);
      const message = `${this.#program} ${args.join(' ')}: ${messageOf(cause)}${said === '' ? '' : `; it said: ${said}`}`;
      throw new OperationalError('LAUNCHER_UNUSABLE', message, { cause });
    }
  }
}

/** A program that does not read its input is no fault: the pipe breaks, and the result counts what was read. */
async function feed(child: Child, path: string | null): Promise<void> {
  const { stdin } = child;
  if (stdin === null) return;
  stdin.on('error', () => undefined);
  if (path === null) stdin.end();
  else await pipeline(createReadStream(path), stdin).catch(() => undefined);
}

/** Returns what ends the watch. */
function stopWhenAsked(child: Child, stop: AbortSignal, overdueAfterMs: number): () => void {
  const end = () => void stopChild(child, stopGraceMs);
  const overdue = setTimeout(end, overdueAfterMs);
  stop.addEventListener('abort', end, { once: true });
  if (stop.aborted) end();
  return () => {
    clearTimeout(overdue);
    stop.removeEventListener('abort', end);
  };
}

async function readResult(stream: Readable): Promise<string> {
  const bytes = await readAll(bounded(stream)).catch(() => Buffer.alloc(0));
  return bytes.toString('utf8');
}

async function* bounded(stream: Readable): AsyncIterable<Uint8Array> {
  let total = 0;
  for await (const chunk of stream as AsyncIterable<Uint8Array>) {
    total += chunk.length;
    if (total <= longestResultBytes) yield chunk;
  }
}

type End =
  | { kind: 'result'; result: LauncherResult }
  | { kind: 'silent'; mayHaveRun: boolean; message: string };

function endOf(exit: Exit, text: string): End {
  const parsed = parseLauncherResult(text);
  if (parsed.ok) return { kind: 'result', result: parsed.result };
  const how = exit.signal === null ? `with code ${exit.code}` : `by ${exit.signal}`;
  const what = text === '' ? 'without a result' : `with a result that cannot be read (${parsed.fault})`;
  const message = `the launcher ended ${how}, ${what}`;
  return { kind: 'silent', mayHaveRun: exit.code !== setupFailedCode, message };
}
