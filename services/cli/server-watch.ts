/**
 * The embedded server when it can store nothing. After its disk was full it does not come back by itself: 2.9 disables
 * JetStream or stands still, 2.15 refuses what goes into the streams that were hit (both seen). So when there is room
 * again, it is started again; until then, and when it does not answer for long, `sandbus up` says so.
 */
import { open, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { messageOf } from '../platform/errors.ts';

export interface ServerFacts {
  /** A line of the server's log that says that it cannot store; null since its start. */
  readonly complaint: string | null;
  /** For how long JetStream has answered nothing. */
  readonly silentMs: number;
  /** On the disk of its store. */
  readonly freeBytes: number;
}

export type ServerDecision =
  | { readonly kind: 'well' }
  /** There is no room yet, so a new start would end the same. */
  | { readonly kind: 'wait'; readonly why: string }
  | { readonly kind: 'restart'; readonly why: string };

const lookMs = 2_000;
const leastFreeBytes = 64 * 1024 * 1024;
/** Longer than a busy machine, or a debugger, makes a server stand still. */
export const longestSilenceMs = 45_000;

export function decideServer(facts: ServerFacts, patienceMs = longestSilenceMs): ServerDecision {
  const silent = facts.silentMs > patienceMs;
  if (facts.complaint === null && !silent) return { kind: 'well' };
  const seconds = Math.round(facts.silentMs / 1000);
  const why = facts.complaint ?? `JetStream has not answered for ${seconds} s`;
  if (facts.freeBytes >= leastFreeBytes) return { kind: 'restart', why };
  const free = Math.floor(facts.freeBytes / 1024 / 1024);
  return { kind: 'wait', why: `${why}; its disk has ${free} MiB left: make room, then it is started again` };
}

const complaints = /no space left on device|JetStream out of resources|JetStream .*DISABLED/i;
/** More of a log than anybody reads is not looked through. */
const mostBytes = 1024 * 1024;

/** Reads what a log got since the last look. */
export class LogTail {
  readonly #file: string;
  #offset = 0;

  constructor(file: string) {
    this.#file = file;
  }

  /** What is there now is past. */
  async skip(): Promise<void> {
    await this.complaint();
  }

  /** The first new line that says that the server cannot store. */
  async complaint(): Promise<string | null> {
    const text = await this.#news().catch(() => '');
    const line = text.split('\n').find((one) => complaints.test(one));
    return line === undefined ? null : line.replace(/^\[\d+\] \S+ \S+ /, '');
  }

  async #news(): Promise<string> {
    const file = await open(this.#file);
    try {
      const { size } = await file.stat();
      // A log that has become shorter was begun anew.
      const from = Math.max(size < this.#offset ? 0 : this.#offset, size - mostBytes);
      const { buffer } = await file.read(Buffer.alloc(size - from), 0, null, from);
      this.#offset = size;
      return buffer.toString('utf8');
    } finally {
      await file.close();
    }
  }
}

export interface ServerWatchOptions {
  readonly logFile: string;
  readonly onEvent: (text: string) => void;
  /** Ends the server, which is then started again. */
  readonly restart: () => Promise<void>;
  readonly patienceMs?: number | undefined;
}

export class ServerWatch {
  readonly #options: ServerWatchOptions;
  readonly #log: LogTail;
  #complaint: string | null = null;
  #said = '';
  #answeredAtMs = performance.now();

  constructor(options: ServerWatchOptions) {
    this.#options = options;
    this.#log = new LogTail(options.logFile);
  }

  answered(): void {
    this.#answeredAtMs = performance.now();
  }

  /** A question to a server that stands still may take long, so this does not wait for one. */
  async keepLooking(stopping: AbortSignal): Promise<void> {
    this.answered();
    while (!stopping.aborted) {
      await delay(lookMs, undefined, { signal: stopping }).catch(() => undefined);
      if (!stopping.aborted)
        await this.#look().catch((error: unknown) =>
          this.#options.onEvent(`nats-server: ${messageOf(error)}`),
        );
    }
  }

  async #look(): Promise<void> {
    const { logFile, onEvent, restart, patienceMs } = this.#options;
    this.#complaint = (await this.#log.complaint()) ?? this.#complaint;
    const disk = await statfs(dirname(logFile));
    const silentMs = performance.now() - this.#answeredAtMs;
    const freeBytes = disk.bavail * disk.bsize;
    const decision = decideServer({ complaint: this.#complaint, silentMs, freeBytes }, patienceMs);
    const text = decision.kind === 'well' ? '' : decision.why;
    if (text !== '' && decision.kind !== this.#said)
      onEvent(`nats-server cannot store: ${text}${decision.kind === 'restart' ? '; starting it again' : ''}`);
    this.#said = decision.kind;
    if (decision.kind !== 'restart') return;
    await restart();
    await this.#log.skip();
    this.#complaint = null;
    this.answered();
  }
}
