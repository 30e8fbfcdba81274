/** One request to a service, whose answer may be an error: header `Sandbus-Error` with the code, a sentence as the body. */
import { setTimeout as delay } from 'node:timers/promises';
import { OperationalError } from '../platform/errors.ts';
import type { Bus, Headers, Reply } from '../platform/nats/bus.ts';
import { headerNames } from '../platform/topology.ts';

export async function request(
  bus: Bus,
  subject: string,
  data: Uint8Array,
  options: { readonly headers?: Headers; readonly timeoutMs?: number } = {},
): Promise<Reply> {
  const reply = await bus.request(subject, data, options.headers ?? {}, options.timeoutMs ?? 10_000);
  const code = reply.headers[headerNames.error];
  if (code !== undefined)
    throw new OperationalError(code, `${subject}: ${Buffer.from(reply.data).toString('utf8')}`);
  return reply;
}

/** Whether a request failed because nobody answered: services that start again are back in a while. */
export const isAway = (error: unknown): boolean =>
  error instanceof OperationalError && /^(NO_SERVICE|REQUEST_FAILED|UNAVAILABLE)$/.test(error.code);

/** Asks until there is an answer, for so long as nobody answers; null when `signal` ends it first. */
export async function patiently<T>(
  ask: () => Promise<T>,
  patienceMs: number,
  signal?: AbortSignal,
): Promise<T | null> {
  const giveUpAt = performance.now() + patienceMs;
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (signal?.aborted === true) return null;
      if (!isAway(error) || performance.now() >= giveUpAt) throw error;
      await delay(500);
    }
  }
}

/** A JSON reply. Services are trusted to keep their own contract, so its shape is not checked again. */
export function parseReply<T>(data: Uint8Array): T {
  return JSON.parse(Buffer.from(data).toString('utf8')) as T;
}
