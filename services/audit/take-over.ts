/**
 * What a writer before this one had been given and had not acked when it ended. The bus delivers that again only after the
 * ack wait, half a minute in which a job's end would be recorded without its start, and whoever waits for an end that was
 * under way would wait. There is one writer at a time, so the next one reads it from the streams at once; what is
 * delivered again later is then recorded already.
 */
import { messageOf, OperationalError, PoisonError } from '../platform/errors.ts';
import type { Logger } from '../platform/log.ts';
import type { Bus } from '../platform/nats/bus.ts';
import { consumers } from '../platform/topology.ts';
import type { Recorder } from './handler.ts';

const taken = [consumers.auditSubmissions, consumers.auditJobs];
/** Read and recorded at one time: each may be as large as a message can be. */
const windowMessages = 64;
/**
 * The newest ones, several times as many as a writer is given at one time. An old message that was never acked, with many
 * acked ones after it, must not make a start long; it is delivered again.
 */
const mostSequences = 8192;

/** Resolves when all that can be recorded now is. What cannot is left to its next delivery. */
export async function takeOver(
  bus: Pick<Bus, 'underWay' | 'messageAt'>,
  record: Recorder,
  log: Logger,
): Promise<void> {
  for (const { stream, durable } of taken)
    try {
      const underWay = await bus.underWay(stream, durable);
      if (underWay === null) continue;
      const { to } = underWay;
      const from = Math.max(underWay.from, to - mostSequences + 1);
      log.info({ stream, from, to }, 'takes over what was under way');
      for (let first = from; first <= to; first += windowMessages)
        await recordAll(bus, stream, [first, Math.min(to, first + windowMessages - 1)], record);
    } catch (error) {
      if (!(error instanceof OperationalError)) throw error;
      log.warn({ stream, error: messageOf(error) }, 'what was under way comes with its next delivery');
    }
}

async function recordAll(
  bus: Pick<Bus, 'messageAt'>,
  stream: string,
  [first, last]: readonly [number, number],
  record: Recorder,
): Promise<void> {
  const sequences = Array.from({ length: last - first + 1 }, (_, index) => first + index);
  const found = await Promise.all(sequences.map((sequence) => bus.messageAt(stream, sequence)));
  const recorded = await Promise.allSettled(
    found.filter((message) => message !== null).map((message) => record(message)),
  );
  for (const result of recorded)
    if (result.status === 'rejected' && !isForNextDelivery(result.reason)) throw result.reason;
}

/** That one buries it, or tries again. */
const isForNextDelivery = (error: unknown): boolean =>
  error instanceof OperationalError || error instanceof PoisonError;
