/**
 * Drives the launcher: one `launcher serve` for all jobs, started with the first and again after it has died. This file
 * alone knows how a job gets to the launcher and its result back.
 */
import { messageOf, OperationalError } from '../platform/errors.ts';
import { runChild } from '../platform/process.ts';
import type { SeenOutput } from './finished.ts';
import type { LauncherFrame, OutputName } from './launcher-frames.ts';
import type { LauncherJob } from './launcher-options.ts';
import { launcherArguments } from './launcher-options.ts';
import { LauncherProcess } from './launcher-process.ts';
import type { HostReport, LauncherResult, SyscallList } from './launcher-result.ts';
import {
  describeRefusal,
  parseHostReport,
  parseLauncherResult,
  parseRefusal,
  parseSyscallList,
} from './launcher-result.ts';
import { OutputTap } from './output-tap.ts';

/** How a job ended. */
export type LauncherEnd = {
  readonly stdout: SeenOutput;
  readonly stderr: SeenOutput;
} & (
  | { readonly kind: 'result'; readonly result: LauncherResult }
  /** Nothing that can be read was said of it. `mayHaveRun`: user code may have been running and died with the launcher. */
  | { readonly kind: 'silent'; readonly mayHaveRun: boolean; readonly message: string }
);

export interface LauncherStreams {
  /** Resolves when it can take more: the job is slowed down meanwhile. */
  readonly onOutput: (stream: OutputName, bytes: Uint8Array) => Promise<void>;
}

/** A launcher kills a tree at once and gives up after ten seconds; then it may copy outputs. One that takes longer hangs. */
const stopGraceMs = 30_000;
/** On top of the wall clock that the launcher itself keeps: setting up, collecting outputs, cleaning up. */
const overdueMs = 60_000;
/** Output of each stream that may be on its way here or wait to be taken. */
const windowBytes = 128 * 1024;
const longestResultBytes = 4 * 1024 * 1024;
const closeGraceMs = 20_000;

export class Launcher {
  readonly #program: string;
  readonly #mostJobs: number;
  #process: Promise<LauncherProcess> | null = null;
  #starting: Promise<LauncherProcess> | null = null;

  constructor(program: string, mostJobs = 64) {
    this.#program = program;
    this.#mostJobs = mostJobs;
  }

  /** Runs one job to its end. An abort of `stop` ends it before its time. Never throws for what the job does. */
  async run(job: LauncherJob, streams: LauncherStreams, stop: AbortSignal): Promise<LauncherEnd> {
    let launcher: LauncherProcess;
    try {
      launcher = await this.#serving();
    } catch (error) {
      const nothing = () => new OutputTap().seen();
      const message = messageOf(error);
      return { stdout: nothing(), stderr: nothing(), kind: 'silent', mayHaveRun: false, message };
    }
    return new RunningJob(launcher, streams).run(job, stop);
  }

  /** Ends the launcher, and with it what still runs. */
  async close(): Promise<void> {
    const launcher = await this.#process?.catch(() => null);
    await launcher?.close(closeGraceMs);
  }

  async #serving(): Promise<LauncherProcess> {
    const current = await this.#process?.catch(() => null);
    if (current?.alive === true) return current;
    // Whoever comes first starts the next one; the others find its promise here.
    if (this.#starting === null) {
      this.#starting = LauncherProcess.start(this.#program, this.#mostJobs);
      this.#process = this.#starting;
      this.#starting
        .catch(() => undefined)
        .finally(() => {
          this.#starting = null;
        });
    }
    return this.#starting;
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

/** One job, from its START to its result and the last byte of its output. */
class RunningJob {
  readonly #launcher: LauncherProcess;
  readonly #streams: LauncherStreams;
  readonly #taps = { stdout: new OutputTap(), stderr: new OutputTap() };
  /** Each ends when what came of the stream so far has been taken. */
  readonly #taking = { stdout: Promise.resolve(), stderr: Promise.resolve() };
  readonly #came = { stdout: 0, stderr: 0 };
  readonly #ended = Promise.withResolvers<End>();
  #result: LauncherResult | null = null;
  #number = 0;

  constructor(launcher: LauncherProcess, streams: LauncherStreams) {
    this.#launcher = launcher;
    this.#streams = streams;
  }

  async run(job: LauncherJob, stop: AbortSignal): Promise<LauncherEnd> {
    this.#number = this.#launcher.begin(launcherArguments(job), {
      onFrame: (frame) => this.#onFrame(frame),
      onDeath: (message) => this.#ended.resolve({ kind: 'silent', mayHaveRun: true, message }),
    });
    this.#credit('stdout', windowBytes);
    this.#credit('stderr', windowBytes);
    const forget = this.#cancelWhenAsked(stop, job.limits.wallMs + overdueMs);
    try {
      const end = await this.#ended.promise;
      await Promise.all([this.#taking.stdout, this.#taking.stderr]);
      return { stdout: this.#taps.stdout.seen(), stderr: this.#taps.stderr.seen(), ...end };
    } finally {
      forget();
      this.#launcher.forget(this.#number);
    }
  }

  #onFrame(frame: Extract<LauncherFrame, { job: number }>): void {
    if (frame.type === 'stdout' || frame.type === 'stderr') this.#onOutput(frame.type, frame.bytes);
    else if (frame.type === 'result') this.#onResult(frame.text);
    this.#endWhenComplete();
  }

  #onOutput(name: OutputName, bytes: Buffer): void {
    this.#taps[name].see(bytes);
    this.#came[name] += bytes.length;
    this.#taking[name] = this.#taking[name]
      .then(() => this.#streams.onOutput(name, bytes))
      .then(() => this.#credit(name, bytes.length));
    // A fault of the taker is the fault of the run, and ends the job.
    this.#taking[name].catch((error) => {
      this.#giveUp();
      this.#ended.reject(error);
    });
  }

  #onResult(text: string): void {
    const parsed: ReturnType<typeof parseLauncherResult> =
      text.length > longestResultBytes
        ? { ok: false, fault: `${text.length} bytes` }
        : parseLauncherResult(text);
    if (parsed.ok) {
      this.#result = parsed.result;
      return;
    }
    this.#giveUp();
    const refusal = parseRefusal(text);
    // A result that became too large is the only one of its kind that comes after the plugin.
    const mayHaveRun = refusal === null || refusal.step === 'result';
    const message =
      refusal === null
        ? `the launcher gave a result that cannot be read (${parsed.fault})`
        : describeRefusal(text);
    this.#ended.resolve({ kind: 'silent', mayHaveRun, message });
  }

  /** The result may overtake output; it says how much there is. */
  #endWhenComplete(): void {
    const result = this.#result;
    if (result === null) return;
    if (this.#came.stdout < result.stdout.kept || this.#came.stderr < result.stderr.kept) return;
    this.#ended.resolve({ kind: 'result', result });
  }

  #credit(stream: OutputName, bytes: number): void {
    this.#launcher.send({ type: 'credit', job: this.#number, stream, bytes });
  }

  #giveUp(): void {
    this.#launcher.send({ type: 'cancel', job: this.#number });
    this.#launcher.send({ type: 'discard', job: this.#number });
  }

  /** Returns what ends the watch. */
  #cancelWhenAsked(stop: AbortSignal, overdueAfterMs: number): () => void {
    let hangs: NodeJS.Timeout | undefined;
    const cancel = () => {
      this.#launcher.send({ type: 'cancel', job: this.#number });
      const kill = () => this.#launcher.kill('it did not end a job that it was told to end');
      hangs ??= setTimeout(() => this.#result === null && kill(), stopGraceMs);
    };
    const overdue = setTimeout(cancel, overdueAfterMs);
    stop.addEventListener('abort', cancel, { once: true });
    if (stop.aborted) cancel();
    return () => {
      clearTimeout(overdue);
      clearTimeout(hangs);
      stop.removeEventListener('abort', cancel);
    };
  }
}

type End =
  | { kind: 'result'; result: LauncherResult }
  | { kind: 'silent'; mayHaveRun: boolean; message: string };
