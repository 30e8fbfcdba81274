/** Sums what runs have used of the allowed system calls. Pure. */
import type { JobFinished } from '../client/index.ts';

/** What a filter allows. */
export interface Filter {
  readonly digest: string;
  readonly names: readonly string[];
}

interface Sum {
  calls: number;
  runs: number;
}

export class SyscallUse {
  readonly #filter: Filter;
  readonly #used = new Map<string, Sum>();
  /** By name and answer. */
  readonly #refused = new Map<string, Sum>();
  readonly #unavailable = new Map<string, number>();
  readonly #otherFilters = new Map<string, number>();
  #runs = 0;
  #counted = 0;

  constructor(filter: Filter) {
    this.#filter = filter;
  }

  get runs(): number {
    return this.#runs;
  }

  /** Denials are exact even where system calls could not be counted. */
  add({
    syscalls,
    denials,
    probes,
    sandbox,
  }: Pick<JobFinished, 'syscalls' | 'denials' | 'probes' | 'sandbox'>): void {
    this.#runs++;
    if (sandbox.filterDigest !== this.#filter.digest) increase(this.#otherFilters, sandbox.filterDigest);
    if (syscalls.available) this.#counted++;
    else increase(this.#unavailable, syscalls.unavailableReason ?? 'no reason given');
    const refusals = new Map<string, number>();
    for (const { syscall, number, answer, count } of [...denials, ...probes]) {
      const name = syscall === 'unknown' ? `number ${number}` : syscall;
      refusals.set(`${name} ${answer}`, (refusals.get(`${name} ${answer}`) ?? 0) + count);
    }
    for (const [key, count] of refusals) sum(this.#refused, key, count);
    const refusedCalls = refusedOf(denials, probes);
    for (const [name, count] of Object.entries(syscalls.counts)) {
      // The launcher adds refused calls to the counts; what was refused was not used.
      const done = count - (refusedCalls.get(name) ?? 0);
      if (done > 0) sum(this.#used, name, done);
    }
  }

  summary() {
    const used = [...this.#used]
      .map(([syscall, { calls, runs }]) => ({ syscall, calls, runs }))
      .toSorted((a, b) => b.calls - a.calls);
    return {
      runs: this.#runs,
      counted: this.#counted,
      filterDigest: this.#filter.digest,
      allowed: this.#filter.names.length,
      unavailable: [...this.#unavailable].map(([reason, runs]) => ({ reason, runs })),
      otherFilters: [...this.#otherFilters].map(([digest, runs]) => ({ digest, runs })),
      used,
      neverUsed: this.#filter.names.filter((name) => !this.#used.has(name)),
      refused: [...this.#refused].map(([key, { calls, runs }]) => {
        const space = key.lastIndexOf(' ');
        return { syscall: key.slice(0, space), answer: key.slice(space + 1), calls, runs };
      }),
    };
  }
}

function refusedOf(...lists: readonly (readonly JobFinished['denials'][number][])[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { syscall, count } of lists.flat()) counts.set(syscall, (counts.get(syscall) ?? 0) + count);
  return counts;
}

function sum(sums: Map<string, Sum>, key: string, calls: number): void {
  const found = sums.get(key) ?? { calls: 0, runs: 0 };
  sums.set(key, { calls: found.calls + calls, runs: found.runs + 1 });
}

const increase = (counts: Map<string, number>, key: string): void =>
  void counts.set(key, (counts.get(key) ?? 0) + 1);
