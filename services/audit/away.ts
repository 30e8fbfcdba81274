/**
 * What is asked while this audit service cannot reach its ledger. Another one may have it, on another machine, and its
 * answer is the right one: so this one waits longer than an answer takes before it says why it has none. Whoever asks then
 * learns the reason instead of a time-out.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { OperationalError } from '../platform/errors.ts';
import type { Logger } from '../platform/log.ts';
import type { Bus, Reply, Request } from '../platform/nats/bus.ts';
import { requestFilters } from '../platform/topology.ts';
import { Answers } from './answers.ts';

/** Half of what a client waits for an answer. */
const othersMs = 5_000;
/** The most that a question may be held; more is no question. */
const longestHoldMs = 20_000;

export interface AwayParts {
  readonly bus: Pick<Bus, 'serve'>;
  readonly log: Logger;
  readonly reason: () => string;
}

/** Answers until it is stopped; then what is still held is answered at once. */
export function answerWhileAway({ bus, log, reason }: AwayParts): { stop: () => Promise<void> } {
  const stopping = new AbortController();
  const answers = new Answers({ bus, log }, 'audit-away');
  const refuse = async ({ data }: Request): Promise<Reply> => {
    await delay(othersMs + holdOf(data), undefined, { signal: stopping.signal }).catch(() => undefined);
    throw new OperationalError('LEDGER_UNAVAILABLE', reason());
  };
  for (const filter of [requestFilters.auditRead, requestFilters.auditOperate, requestFilters.download])
    answers.serve(filter, refuse);
  return {
    stop: () => {
      stopping.abort();
      return answers.stop();
    },
  };
}

/** How long the one that has the ledger would hold this question, milliseconds. */
function holdOf(data: Uint8Array): number {
  const [, hold] = /"waitMs":(\d{1,5})\b/.exec(Buffer.from(data).subarray(0, 4096).toString('latin1')) ?? [];
  return Math.min(Number(hold ?? 0), longestHoldMs);
}
