/**
 * One `launcher serve`, and who waits for which of its jobs. It never outlives this process: its standard input is a
 * socket whose other end is ours alone, and when that closes, the launcher kills its jobs and leaves.
 */
import { OperationalError } from '../platform/errors.ts';
import type { Child } from '../platform/process.ts';
import { startChild } from '../platform/process.ts';
import type { ClientFrame, LauncherFrame } from './launcher-frames.ts';
import { encodeFrame, FrameFault, FrameReader, framesVersion } from './launcher-frames.ts';
import { describeRefusal } from './launcher-result.ts';

/** What one job is told of its launcher. */
export interface JobListener {
  onFrame(frame: Extract<LauncherFrame, { job: number }>): void;
  /** The launcher is gone, and the job with it. */
  onDeath(message: string): void;
}

const longestComplaint = 2000;
/** From the start to HELLO: looking at the host, removing what a dead launcher left, loading BPF programs. */
const helloMs = 30_000;
const lastWordsMs = 5_000;

export class LauncherProcess {
  readonly #child: Child;
  readonly #jobs = new Map<number, JobListener>();
  readonly #hello = Promise.withResolvers<void>();
  #lastJob = 0;
  /** Why it ends or ended; null while it serves. */
  #fault: string | null = null;
  /** The end of what it wrote to its standard error. */
  #complaint = '';
  #alive = true;
  /** Resolves when the process is gone and everybody was told. */
  readonly gone: Promise<void>;

  private constructor(child: Child) {
    this.#child = child;
    child.stdin?.on('error', () => undefined);
    child.stderr?.on('data', (chunk: Buffer) => {
      this.#complaint = `${this.#complaint}${chunk.toString('utf8')}`.slice(-longestComplaint);
    });
    this.gone = this.#follow();
    this.#hello.promise.catch(() => undefined);
  }

  /** Starts one and waits until it serves. Rejects with OperationalError when it does not; then nothing runs. */
  static async start(program: string, mostJobs: number): Promise<LauncherProcess> {
    const child = await startChild(program, ['serve', '--jobs', String(mostJobs)], {
      env: {},
      stdio: ['pipe', 'pipe', 'pipe'],
      // Ctrl-C is for the executor, which lets its jobs finish.
      ownGroup: true,
    });
    const launcher = new LauncherProcess(child);
    const late = setTimeout(() => launcher.kill('it did not say hello'), helloMs);
    await launcher.#hello.promise.finally(() => clearTimeout(late));
    return launcher;
  }

  get alive(): boolean {
    return this.#alive;
  }

  /** Sends START for a new job and returns its number. */
  begin(words: readonly string[], listener: JobListener): number {
    const job = ++this.#lastJob;
    this.#jobs.set(job, listener);
    this.send({ type: 'start', job, words });
    return job;
  }

  send(frame: ClientFrame): void {
    if (this.#alive) this.#child.stdin?.write(encodeFrame(frame));
  }

  /** Nobody asks for this job any more. */
  forget(job: number): void {
    this.#jobs.delete(job);
  }

  kill(why: string): void {
    this.#fault ??= why;
    this.#child.kill('SIGKILL');
  }

  /** Lets it leave; it kills what runs. */
  async close(graceMs: number): Promise<void> {
    this.#fault ??= 'the executor closed it';
    this.#child.stdin?.end();
    const late = setTimeout(() => this.kill('it did not leave'), graceMs);
    await this.gone.finally(() => clearTimeout(late));
  }

  async #follow(): Promise<void> {
    const reader = new FrameReader();
    // What it had still written is read; a process that it left behind could hold the stream open for ever.
    void this.#child.exited.then(() => setTimeout(() => this.#child.stdout?.destroy(), lastWordsMs).unref());
    try {
      for await (const chunk of this.#child.stdout ?? [])
        for (const frame of reader.push(chunk as Buffer)) this.#receive(frame);
    } catch (error) {
      if (error instanceof FrameFault) this.kill(`it sent what is no frame (${error.message})`);
    }
    // Its end of the stream is the end of its service, whether or not it exits by itself.
    this.#alive = false;
    this.#child.stdin?.end();
    const late = setTimeout(() => this.#child.kill('SIGKILL'), helloMs);
    const exit = await this.#child.exited.finally(() => clearTimeout(late));
    const how = exit.signal === null ? `with code ${exit.code}` : `by ${exit.signal}`;
    const said = [this.#fault, this.#complaint.trim() || null].filter((text) => text !== null);
    const why = said.length === 0 ? '' : `: ${said.join('; it said: ')}`;
    const message = `the launcher ended ${how}, without a result${why}`;
    this.#hello.reject(new OperationalError('LAUNCHER_UNUSABLE', message));
    for (const listener of this.#jobs.values()) listener.onDeath(message);
    this.#jobs.clear();
  }

  #receive(frame: LauncherFrame): void {
    if (frame.type === 'hello') {
      if (frame.version === framesVersion) this.#hello.resolve();
      else this.kill(`it speaks version ${frame.version} of the frames, not ${framesVersion}`);
    } else if (frame.type === 'error') {
      this.#fault ??= describeRefusal(frame.text);
    } else {
      this.#jobs.get(frame.job)?.onFrame(frame);
    }
  }
}
