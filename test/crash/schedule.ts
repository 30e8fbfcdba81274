/** What happens when, made of a seed alone: the same seed gives the same faults and the same jobs. Pure. */

import type { Part } from '../../services/cli/system.ts';

export interface Fault {
  readonly atMs: number;
  /** `kill` is SIGKILL; `freeze` is SIGSTOP, and SIGCONT after `forMs`. */
  readonly kind: 'kill' | 'freeze';
  readonly part: Part;
  readonly forMs: number;
}

export type JobKind = 'quick' | 'sleep' | 'print' | 'daemon' | 'cancel';

export interface PlannedJob {
  readonly kind: JobKind;
  readonly maxAttempts: number;
  /** How long the plugin sleeps. */
  readonly sleepMs: number;
  /** When it is cancelled after its submission, for `cancel`. */
  readonly cancelAfterMs: number;
}

export interface Plan {
  readonly faults: readonly Fault[];
  readonly jobs: readonly PlannedJob[];
}

export interface PlanOptions {
  readonly seed: number;
  readonly jobs: number;
  /** Faults happen within this time. */
  readonly windowMs: number;
  readonly leaseMs: number;
  /** Nodes of the NATS cluster: each is a part that dies. */
  readonly nodes: number;
}

/** Everything dies in turn, in an order that is shuffled for each round. */
const kills: readonly Part[] = ['verifier', 'router', 'executor', 'audit', 'nats-server', 'executor-2'];
const moreNodes = (nodes: number): Part[] =>
  Array.from({ length: nodes - 1 }, (_, index): Part => `nats-server-${index + 2}`);
const meanGapMs = 5_000;
const firstFaultMs = 3_000;
/** For a process that goes on to find out what it has missed. */
const thawMs = 3_000;

export function makePlan(options: PlanOptions): Plan {
  const random = randomOf(options.seed);
  return {
    faults: makeFaults(options, random),
    jobs: Array.from({ length: options.jobs }, () => plannedJob(random)),
  };
}

function makeFaults({ windowMs, leaseMs, nodes }: PlanOptions, random: () => number): Fault[] {
  const faults: Fault[] = [];
  let round: Fault[] = [];
  for (let atMs = firstFaultMs; atMs < windowMs; atMs += meanGapMs * (0.4 + 1.2 * random())) {
    if (round.length === 0) round = shuffled(roundOf(leaseMs, nodes), random);
    faults.push({ ...(round.pop() as Fault), atMs: Math.round(atMs) });
  }
  return faults.map((fault) => afterFreeze(fault, faults)).sort((a, b) => a.atMs - b.atMs);
}

/** What stands still dies only after it has gone on, so that its late word is heard. */
function afterFreeze(fault: Fault, faults: readonly Fault[]): Fault {
  const frozen = faults.find(
    ({ kind, part, atMs, forMs }) =>
      kind === 'freeze' && part === fault.part && fault.atMs > atMs && fault.atMs < atMs + forMs + thawMs,
  );
  return frozen === undefined ? fault : { ...fault, atMs: frozen.atMs + frozen.forMs + thawMs };
}

function roundOf(leaseMs: number, nodes: number): Fault[] {
  const killed = [...kills, ...moreNodes(nodes)].map(
    (part): Fault => ({ atMs: 0, kind: 'kill', part, forMs: 0 }),
  );
  // Far past its lease: others have ended its jobs, or taken them over, when it goes on.
  return [...killed, { atMs: 0, kind: 'freeze', part: 'executor-2', forMs: Math.round(leaseMs * 1.5) }];
}

/** Up to which random number a job is of this kind. */
const kindBounds: readonly (readonly [JobKind, number])[] = [
  ['sleep', 0.12],
  ['print', 0.2],
  ['daemon', 0.24],
  ['cancel', 0.28],
  ['quick', 1],
];

function plannedJob(random: () => number): PlannedJob {
  const number = random();
  const [kind] = kindBounds.find(([, bound]) => number < bound) ?? ['quick'];
  return {
    kind,
    maxAttempts: random() < 0.15 ? 2 : 1,
    sleepMs: kind === 'sleep' || kind === 'cancel' ? Math.round(200 + 2_000 * random()) : 0,
    cancelAfterMs: Math.round(1_500 * random()),
  };
}

function shuffled<T>(list: readonly T[], random: () => number): T[] {
  const keyed = list.map((item) => ({ item, key: random() }));
  return keyed.sort((a, b) => a.key - b.key).map(({ item }) => item);
}

/** mulberry32: numbers from 0 to below 1, each following from the one before. */
export function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
