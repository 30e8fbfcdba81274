/**
 * Holds tenants to their concurrency: no more of a tenant's jobs are with the executors, waiting there or running, than
 * its policy allows. The others are held here in the order in which they were submitted, and let go when one ends, one
 * tenant after the other. What is here follows from the entries in KV, so a router that starts knows it all again. Pure.
 */
import type { JobEntry } from '../platform/job-state.ts';
import { kvKey } from '../platform/topology.ts';

interface Held {
  readonly key: string;
  /** Of its job.verified in JOBS: where it is found again. */
  readonly sequence: number;
  /** Of its submission: its place in the order. */
  readonly order: number;
  readonly ceiling: number;
}

interface Tenant {
  readonly active: Set<string>;
  readonly held: Map<string, Held>;
}

const ceilingOf = ({ concurrency }: JobEntry): number => concurrency ?? Number.POSITIVE_INFINITY;

export class Admission {
  /** In the order of their turns: who was served last is last. */
  readonly #tenants = new Map<string, Tenant>();

  /** Told of each entry as it stands in KV. */
  see(entry: JobEntry): void {
    const key = kvKey(entry);
    if (entry.state === 'ended') {
      this.forget(key);
      return;
    }
    const tenant = this.#tenant(entry.tenant);
    if (entry.runtime !== null) {
      tenant.held.delete(key);
      tenant.active.add(key);
    } else if (entry.held !== null && !tenant.active.has(key))
      tenant.held.set(key, {
        ...{ key, sequence: entry.held, order: entry.submissionSequence },
        ceiling: ceilingOf(entry),
      });
  }

  forget(key: string): void {
    const name = key.split('.')[0] ?? '';
    const tenant = this.#tenants.get(name);
    tenant?.active.delete(key);
    tenant?.held.delete(key);
    if (tenant?.active.size === 0 && tenant.held.size === 0) this.#tenants.delete(name);
  }

  /** Takes a place for a job that has just been verified; false when there is none, or others were before it. */
  enter(entry: JobEntry): boolean {
    const { active, held } = this.#tenant(entry.tenant);
    const key = kvKey(entry);
    if (active.has(key)) return true;
    if (held.size > 0 || active.size >= ceilingOf(entry)) return false;
    active.add(key);
    return true;
  }

  /** The next held job that may go; it has its place from now on. Null when nobody's turn has come. */
  next(): Held | null {
    for (const [name, tenant] of this.#tenants) {
      const first = [...tenant.held.values()].reduce<Held | null>(
        (least, one) => (least === null || one.order < least.order ? one : least),
        null,
      );
      if (first === null || tenant.active.size >= first.ceiling) continue;
      tenant.held.delete(first.key);
      tenant.active.add(first.key);
      this.#tenants.delete(name);
      this.#tenants.set(name, tenant);
      return first;
    }
    return null;
  }

  #tenant(name: string): Tenant {
    const known = this.#tenants.get(name) ?? { active: new Set(), held: new Map() };
    this.#tenants.set(name, known);
    return known;
  }
}
