/** Reads a job's output from the audit service, to the end that its terminal event tells. */
import { setTimeout as delay } from 'node:timers/promises';
import type { JobFinished } from '../platform/codec.ts';
import { OperationalError } from '../platform/errors.ts';
import type { AuditReader, Page, StoredChunk } from './audit-read.ts';
import type { LogItem } from './logs.ts';
import { LogAssembly, logStreams } from './logs.ts';
import type { JobResult } from './result.ts';

/** How long the audit service holds a question for more output. */
const holdMs = 10_000;
/** Chunks are published before the terminal event; this much later, one that is not there will not come. */
const lateMs = 2000;

/** The output so far, and, once the job has ended, what the terminal event knows of it. */
export async function* readLogs(
  reader: AuditReader,
  jobId: string,
  result: JobResult | null,
): AsyncGenerator<LogItem, void> {
  const assembly = new LogAssembly();
  if (result?.kind === 'finished') return yield* finish(reader, jobId, assembly, 0, result.event);
  for (let after = 0, more = true; more; ) {
    const page = await reader.logs({ jobId, after });
    for (const { chunk } of page.items) yield* assembly.add(chunk);
    ({ next: after, more } = page);
  }
}

/** The output as it comes, until the job has ended and all of it was given. */
export async function* followLogs(
  reader: AuditReader,
  jobId: string,
  ended: Promise<JobResult>,
): AsyncGenerator<LogItem, void> {
  const assembly = new LogAssembly();
  let after = 0;
  for (;;) {
    const first = await Promise.race([ended, nextPage(reader, jobId, after)]);
    if ('kind' in first) {
      if (first.kind === 'finished') yield* finish(reader, jobId, assembly, after, first.event);
      return;
    }
    for (const { chunk } of first.items) yield* assembly.add(chunk);
    after = first.next;
  }
}

/** Holds on while there is nothing new; a service that restarts meanwhile is no fault. */
async function nextPage(reader: AuditReader, jobId: string, after: number): Promise<Page<StoredChunk>> {
  try {
    return await reader.logs({ jobId, after, waitMs: holdMs });
  } catch (error) {
    if (!(error instanceof OperationalError)) throw error;
    // `ended` says it when the service stays away.
    await delay(500, undefined, { ref: false });
    return { items: [], next: after, more: true };
  }
}

/** Everything of a finished job that has not been given: stored chunks first, they hold the order of both streams. */
async function* finish(
  reader: AuditReader,
  jobId: string,
  assembly: LogAssembly,
  from: number,
  finished: JobFinished,
): AsyncGenerator<LogItem, void> {
  const giveUpAt = performance.now() + lateMs;
  for (let after = from; !assembly.isComplete(finished); ) {
    const page = await reader.logs({ jobId, after });
    // A chunk that starts beyond what was given would be a gap; the terminal event may hold what is missing.
    for (const { chunk } of page.items) {
      if (chunk.attempt === finished.attempt) yield* assembly.addInline(finished, chunk.stream, chunk.offset);
      yield* assembly.add(chunk);
    }
    after = page.next;
    if (page.more || page.items.length > 0) continue;
    for (const stream of logStreams) yield* assembly.addInline(finished, stream);
    if (assembly.isComplete(finished) || performance.now() > giveUpAt) break;
    await delay(100);
  }
  yield* assembly.missing(finished);
}
