/** Removes what is older than the operator wants to keep: payloads of ended jobs, and spans. Leaves stay for ever. */
import type { LedgerWriter } from '../ledger/store.ts';
import type { Clock } from '../platform/clock.ts';
import { toMicros } from '../platform/clock.ts';
import type { Logger } from '../platform/log.ts';
import { Worker } from './worker.ts';

export interface KeepFor {
  /** Days; null keeps them for ever. */
  readonly payloadDays: number | null;
  readonly spanDays: number | null;
}

const dayMs = 24 * 3_600_000;
/** How often what has become too old is looked for. */
const periodMs = 60_000;
/** Each step is one transaction: commits of events wait for it. */
const step = 500;
const betweenStepsMs = 20;

export class Expiry {
  readonly worker: Worker;
  readonly #store: Pick<LedgerWriter, 'erasePayloads' | 'removeSpans'>;
  readonly #keep: KeepFor;
  readonly #clock: Clock;
  readonly #log: Logger;

  constructor(parts: {
    readonly store: Pick<LedgerWriter, 'erasePayloads' | 'removeSpans'>;
    readonly keep: KeepFor;
    readonly clock: Clock;
    readonly log: Logger;
  }) {
    this.#store = parts.store;
    this.#keep = parts.keep;
    this.#clock = parts.clock;
    this.#log = parts.log;
    this.worker = new Worker('expiry', () => this.#turn(), parts.log);
  }

  /** One step of each; sooner again when there was enough for another. */
  async #turn(): Promise<number | null> {
    const { payloadDays, spanDays } = this.#keep;
    const payloads =
      payloadDays === null ? 0 : await this.#store.erasePayloads(this.#before(payloadDays), step);
    const spans = spanDays === null ? 0 : await this.#store.removeSpans(this.#before(spanDays), step);
    if (payloads + spans > 0) this.#log.info({ payloads, spans }, 'too old, removed');
    return payloads === step || spans === step ? betweenStepsMs : periodMs;
  }

  #before(days: number): number {
    return toMicros(this.#clock.nowMs() - days * dayMs);
  }
}
