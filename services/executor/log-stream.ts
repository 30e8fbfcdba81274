/**
 * The output of a running job as log chunks on the bus. Small writes are gathered for a moment; no chunk is larger
 * than 64 KiB. At most `windowBytes` wait for confirmation: beyond that `write` waits, so that the launcher's pipe
 * fills and the job itself is slowed down instead of this process growing.
 *
 * Logs are a courtesy, the terminal event is the record. When nothing is confirmed for `stallMs`, or a publish fails,
 * the logs of this job are given up: its later output is counted and dropped, and the job runs on.
 */
import type { LogChunk, LogStream } from '../../schemas/generated/events.ts';
import type { Clock } from '../platform/clock.ts';
import { toMicros } from '../platform/clock.ts';
import { messageOf } from '../platform/errors.ts';
import type { Logger } from '../platform/log.ts';
import type { JobRef } from '../platform/topology.ts';

const chunkBytes = 64 * 1024;
const windowBytes = 512 * 1024;
const gatherMs = 50;
const stallMs = 15_000;

export interface LogStreamOptions {
  readonly job: JobRef;
  readonly attempt: number;
  readonly clock: Clock;
  readonly log: Logger;
  /** Resolves when the chunk is confirmed. */
  readonly publish: (chunk: LogChunk) => Promise<void>;
}

interface Side {
  readonly stream: LogStream;
  pending: Uint8Array[];
  pendingBytes: number;
  sequence: number;
  offset: number;
}

export class LogStreams {
  readonly #options: LogStreamOptions;
  readonly #sides: Readonly<Record<LogStream, Side>> = {
    stdout: newSide('stdout'),
    stderr: newSide('stderr'),
  };
  readonly #sending = new Set<Promise<void>>();
  #sendingBytes = 0;
  #gather: NodeJS.Timeout | null = null;
  #stall: NodeJS.Timeout | null = null;
  #room = Promise.withResolvers<void>();
  #givenUp = false;

  constructor(options: LogStreamOptions) {
    this.#options = options;
  }

  /** Takes bytes of a stream; resolves when there is room for more. */
  async write(stream: LogStream, bytes: Uint8Array): Promise<void> {
    const side = this.#sides[stream];
    for (let start = 0; start < bytes.length; start += chunkBytes) {
      const part = bytes.subarray(start, start + chunkBytes);
      if (side.pendingBytes + part.length > chunkBytes) this.#send(side);
      side.pending.push(part);
      side.pendingBytes += part.length;
      if (side.pendingBytes === chunkBytes) this.#send(side);
      while (this.#sendingBytes >= windowBytes && !this.#givenUp) await this.#room.promise;
    }
    this.#gather ??= setTimeout(() => this.#flush(), gatherMs);
  }

  /** Sends what is left and waits until everything is confirmed or given up. */
  async close(): Promise<void> {
    this.#flush();
    while (this.#sending.size > 0 && !this.#givenUp)
      await Promise.race([Promise.all(this.#sending), this.#room.promise]);
    this.#watchStall(false);
  }

  #flush(): void {
    if (this.#gather !== null) clearTimeout(this.#gather);
    this.#gather = null;
    for (const side of Object.values(this.#sides)) this.#send(side);
  }

  #send(side: Side): void {
    if (side.pendingBytes === 0) return;
    const { job, attempt, clock } = this.#options;
    const bytes = Buffer.concat(side.pending);
    const { stream, sequence, offset } = side;
    side.pending = [];
    side.pendingBytes = 0;
    side.sequence += 1;
    side.offset += bytes.length;
    if (this.#givenUp) return;
    const { tenant, jobId } = job;
    const at = toMicros(clock.nowMs());
    this.#publish({ tenant, jobId, at, attempt, stream, sequence, offset, bytes });
  }

  #publish(chunk: LogChunk): void {
    this.#sendingBytes += chunk.bytes.length;
    const sending = this.#options
      .publish(chunk)
      .catch((error: unknown) => this.#giveUp(messageOf(error)))
      .finally(() => {
        this.#sending.delete(sending);
        this.#sendingBytes -= chunk.bytes.length;
        this.#watchStall(this.#sending.size > 0);
        this.#wakeWriters();
      });
    this.#sending.add(sending);
    if (this.#stall === null) this.#watchStall(true);
  }

  /** Every confirmation starts the clock anew. */
  #watchStall(on: boolean): void {
    if (this.#stall !== null) clearTimeout(this.#stall);
    this.#stall =
      on && !this.#givenUp
        ? setTimeout(() => this.#giveUp(`nothing confirmed for ${stallMs} ms`), stallMs)
        : null;
  }

  #giveUp(why: string): void {
    if (this.#givenUp) return;
    this.#givenUp = true;
    const { job, log } = this.#options;
    log.warn({ ...job, error: why }, 'log chunks given up: the rest of this output is in no log');
    this.#wakeWriters();
  }

  #wakeWriters(): void {
    this.#room.resolve();
    this.#room = Promise.withResolvers();
  }
}

const newSide = (stream: LogStream): Side => ({
  stream,
  pending: [],
  pendingBytes: 0,
  sequence: 0,
  offset: 0,
});
