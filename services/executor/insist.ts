/** What must be said on the bus is tried until it is said: a result that exists is never thrown away for a short outage. */
import { setTimeout as delay } from 'node:timers/promises';
import { OperationalError } from '../platform/errors.ts';
import type { Logger } from '../platform/log.ts';

const firstDelayMs = 100;
const longestDelayMs = 5_000;

export interface Insistence {
  readonly what: string;
  readonly log: Logger;
  /** From its abort on, the next failure is final. */
  readonly giveUp: AbortSignal;
}

export async function insist<T>(options: Insistence, action: () => Promise<T>): Promise<T> {
  for (let delayMs = firstDelayMs; ; delayMs = Math.min(longestDelayMs, 2 * delayMs)) {
    try {
      return await action();
    } catch (error) {
      if (!(error instanceof OperationalError) || error.code === 'TOO_LARGE' || options.giveUp.aborted)
        throw error;
      options.log.warn(
        { what: options.what, code: error.code, error: error.message, delayMs },
        'will try again',
      );
      await delay(delayMs, undefined, { signal: options.giveUp }).catch(() => undefined);
    }
  }
}
