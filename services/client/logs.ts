/**
 * A job's output, exactly: chunks may come twice, and chunks may be gone, so each one's offset is held against what has
 * been given already. What is gone, and not in the terminal event either, is reported as a gap; nothing is made up.
 */
import type { JobFinished, LogChunk, LogStream } from '../platform/codec.ts';

export interface OutputItem {
  readonly kind: 'output';
  readonly attempt: number;
  readonly stream: LogStream;
  /** Of the first byte, in this stream of this attempt. */
  readonly offset: number;
  readonly bytes: Uint8Array;
}

/** Bytes that the plugin wrote and that are not kept any more. */
export interface GapItem {
  readonly kind: 'gap';
  readonly attempt: number;
  readonly stream: LogStream;
  readonly offset: number;
  readonly missingBytes: number;
}

export type LogItem = OutputItem | GapItem;

export const logStreams: readonly LogStream[] = ['stdout', 'stderr'];

/** Puts the output of one job together. */
export class LogAssembly {
  readonly #given = new Map<string, number>();

  /** What `chunk` adds. */
  add(chunk: LogChunk): LogItem[] {
    const { attempt, stream, bytes } = chunk;
    const given = this.#givenOf(attempt, stream);
    const end = chunk.offset + bytes.length;
    if (end <= given) return [];
    this.#given.set(keyOf(attempt, stream), end);
    if (chunk.offset > given) {
      const gap = {
        kind: 'gap',
        attempt,
        stream,
        offset: given,
        missingBytes: chunk.offset - given,
      } as const;
      return [gap, { kind: 'output', attempt, stream, offset: chunk.offset, bytes }];
    }
    return [{ kind: 'output', attempt, stream, offset: given, bytes: bytes.subarray(given - chunk.offset) }];
  }

  /** Whether all that the last attempt wrote, up to its limit, has been given. */
  isComplete(finished: JobFinished): boolean {
    return logStreams.every(
      (stream) => this.#givenOf(finished.attempt, stream) >= finished[stream].keptBytes,
    );
  }

  /** What the terminal event, which holds the beginning of each stream, adds of the bytes before `before`. */
  addInline(finished: JobFinished, stream: LogStream, before = Number.POSITIVE_INFINITY): LogItem[] {
    const { attempt } = finished;
    const bytes = finished[stream].inline.subarray(0, Math.min(before, finished[stream].keptBytes));
    const offset = this.#givenOf(attempt, stream);
    if (bytes.length <= offset) return [];
    this.#given.set(keyOf(attempt, stream), bytes.length);
    return [{ kind: 'output', attempt, stream, offset, bytes: bytes.subarray(offset) }];
  }

  /** What is still missing when nothing more can come. */
  missing(finished: JobFinished): GapItem[] {
    const { attempt } = finished;
    return logStreams.flatMap((stream) => {
      const offset = this.#givenOf(attempt, stream);
      const missingBytes = finished[stream].keptBytes - offset;
      return missingBytes > 0 ? [{ kind: 'gap' as const, attempt, stream, offset, missingBytes }] : [];
    });
  }

  #givenOf(attempt: number, stream: LogStream): number {
    return this.#given.get(keyOf(attempt, stream)) ?? 0;
  }
}

const keyOf = (attempt: number, stream: LogStream): string => `${attempt} ${stream}`;
