/** Lets held jobs go when their turn has come, by the job.verified that is still in JOBS. */
import { messageOf, OperationalError } from '../platform/errors.ts';
import type { Admission } from './admission.ts';
import type { RouterParts } from './handler.ts';
import { routeHeld } from './handler.ts';

export class HeldJobs {
  readonly #parts: RouterParts;
  readonly #admission: Admission;
  /** They have their places, and are tried again. */
  readonly #failed = new Map<string, number>();
  #running = false;

  constructor(parts: RouterParts) {
    this.#parts = parts;
    this.#admission = parts.admission;
  }

  /** Never throws: what fails is tried again at the next call. */
  async letGo(): Promise<void> {
    if (this.#running) return;
    this.#running = true;
    const failed = [...this.#failed];
    this.#failed.clear();
    try {
      for (const [key, sequence] of failed) await this.#letGoOne(key, sequence);
      for (let next = this.#admission.next(); next !== null; next = this.#admission.next())
        await this.#letGoOne(next.key, next.sequence);
    } finally {
      this.#running = false;
    }
  }

  /** Says again where a job goes whose router may have died before it could. */
  sayAgain(key: string, sequence: number): Promise<void> {
    return this.#letGoOne(key, sequence);
  }

  async #letGoOne(key: string, sequence: number): Promise<void> {
    const { bus, log } = this.#parts.context;
    try {
      const message = await bus.messageAt('JOBS', sequence);
      if (message !== null) return await routeHeld(this.#parts, message);
      log.error({ job: key, sequence }, 'its job.verified has left the bus: it waits for its deadline');
      this.#admission.forget(key);
    } catch (error) {
      if (!(error instanceof OperationalError)) throw error;
      log.warn({ job: key, error: messageOf(error) }, 'could not let a held job go; will try again');
      this.#failed.set(key, sequence);
    }
  }
}
