/** Time as the events carry it: microseconds since 1970. */
import type { Micros } from '../../schemas/generated/events.ts';

export interface Clock {
  /** Wall clock, milliseconds since 1970. */
  nowMs(): number;
  /** Never goes back, milliseconds. */
  monotonicMs(): number;
}

export const systemClock: Clock = { nowMs: () => Date.now(), monotonicMs: () => performance.now() };

export const toMicros = (ms: number): Micros => Math.round(ms * 1000);
export const toMs = (micros: Micros): number => micros / 1000;
