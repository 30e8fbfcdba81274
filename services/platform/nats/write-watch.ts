/**
 * Which writes do not come through. A server whose disk was full may go on answering questions and refuse, or not even
 * answer, what is to be stored, for some streams and not for others; only the writes themselves show it. One that was
 * refused by design (a full stream, a conflict) came through.
 */

/** A service that says such a thing no more has no trouble with it: so long a failure counts. */
const countsMs = 120_000;

interface Failure {
  readonly sinceMs: number;
  lastMs: number;
  message: string;
}

export class WriteWatch {
  readonly #failing = new Map<string, Failure>();
  readonly #nowMs: () => number;

  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  cameThrough(what: string): void {
    this.#failing.delete(what);
  }

  failed(what: string, message: string): void {
    const now = this.#nowMs();
    const known = this.#failing.get(what);
    if (known === undefined) this.#failing.set(what, { sinceMs: now, lastMs: now, message });
    else Object.assign(known, { lastMs: now, message });
  }

  /** Each trouble as a sentence. */
  get troubles(): string[] {
    const now = this.#nowMs();
    const current = [...this.#failing].filter(([, { lastMs }]) => now - lastMs < countsMs);
    return current.map(([what, { sinceMs, message }]) => {
      const seconds = Math.round((now - sinceMs) / 1000);
      return `${what} is not stored, for ${seconds} s (${message}): see the log and the disk of the NATS server`;
    });
  }
}

/** `job.verified`, `work`, `audit`: what is said, without of whom. */
export function kindOfSubject(subject: string): string {
  const [first = '', second = ''] = subject.split('.');
  return first === 'job' ? `${first}.${second}` : first;
}
