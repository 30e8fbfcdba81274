/** What somebody is told who waits for the audit service: that it does not answer, and why, as far as that is known. */
import { messageOf } from '../platform/errors.ts';
import { isAway } from './request.ts';

/** `reason` is what the last question failed with; null while there is neither an answer nor a failure. */
export type OnWaiting = (reason: string | null) => void;

/** Shorter waits are not worth a word: services that start again are back by then. */
const quietMs = 2_000;
/** A question that is held (`waitMs`) may take that much longer. */
const unansweredMs = 3_000;

/** Follows the questions to one service. Each reason is told once, until there is an answer. */
export class Waiting {
  readonly #tell: OnWaiting;
  /** When the first question began that has failed since the last answer; null when none has. */
  #sinceMs: number | null = null;
  #reason: string | null = null;
  #told: string | null | undefined;

  constructor(tell: OnWaiting = () => undefined) {
    this.#tell = tell;
  }

  /** Asks. A failure is told when somebody asks again: whoever gives up says it himself. */
  async during<T>(ask: () => Promise<T>, waitMs: number): Promise<T> {
    const beganMs = performance.now();
    if (this.#sinceMs !== null && beganMs - this.#sinceMs >= quietMs) this.#say(this.#reason);
    const timer = setTimeout(() => this.#say(this.#reason), waitMs + unansweredMs);
    try {
      const answer = await ask();
      this.#answered();
      return answer;
    } catch (error) {
      if (isAway(error)) this.#failed(beganMs, messageOf(error));
      else this.#answered();
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  #answered(): void {
    this.#sinceMs = null;
    this.#reason = null;
    this.#told = undefined;
  }

  #failed(beganMs: number, reason: string): void {
    this.#sinceMs ??= beganMs;
    this.#reason = reason;
  }

  #say(reason: string | null): void {
    if (reason === this.#told) return;
    this.#told = reason;
    this.#tell(reason);
  }
}
