/**
 * The crash test: many jobs while everything dies, each in turn. Prints its seed; the same seed gives the same faults.
 *   npm run test:crash -- [--jobs 2000] [--minutes 3] [--seed N] [--nodes 3] [--keep]
 * SANDBUS_NATS_SERVER names another nats-server than the installed one.
 */

import { hostname } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { Entry } from '../../services/client/index.ts';
import { OperationalError, UsageError } from '../../services/platform/errors.ts';
import { terminalKinds } from '../../services/platform/topology.ts';
import type { TestSystem } from '../with-system.ts';
import { connectAsDeployment, startTestSystem } from '../with-system.ts';
import { inflict } from './faults.ts';
import { leftOver } from './left-over.ts';
import { submitAll } from './load.ts';
import { makePlan } from './schedule.ts';
import { countStarts } from './starts.ts';
import { judge } from './verdict.ts';

const leaseMs = 12_000;
/** Of the whole time, for submissions and faults; the rest is for redeliveries, which take 30 s, and the last jobs. */
const faultyShare = 0.45;
/** The bus is empty so long after the last job at the latest. */
const emptyMs = 100_000;

const began = performance.now();
const say = (text: string) =>
  void process.stderr.write(`[${((performance.now() - began) / 1000).toFixed(1).padStart(6)}] ${text}\n`);

function readOptions() {
  const { values } = parseArgs({
    options: {
      jobs: { type: 'string', default: '2000' },
      minutes: { type: 'string', default: '3' },
      seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 31)) },
      nodes: { type: 'string', default: '1' },
      keep: { type: 'boolean', default: false },
    },
  });
  const [jobs, minutes, seed, nodes] = [values.jobs, values.minutes, values.seed, values.nodes].map(
    Number,
  ) as [number, number, number, number];
  if (!(jobs > 0 && minutes > 0 && Number.isInteger(seed)))
    throw new UsageError('--jobs, --minutes and --seed are numbers above 0');
  return { jobs, minutes, seed, nodes, keep: values.keep };
}

async function crashTest({
  jobs,
  minutes,
  seed,
  nodes,
  keep,
}: ReturnType<typeof readOptions>): Promise<number> {
  const limitMs = minutes * 60_000;
  const windowMs = limitMs * faultyShare;
  const plan = makePlan({ seed, jobs, windowMs, leaseMs, nodes });
  say(`seed ${seed}: ${jobs} jobs, ${plan.faults.length} faults within ${windowMs / 1000} s`);
  const starts = await countStarts();
  const system = await startTestSystem(
    { SANDBUS_BASH: starts.bash, SANDBUS_LEASE_MS: String(leaseMs), SANDBUS_SLOTS: '4' },
    { executors: 2, nodes, replicas: nodes, sizeFactor: 1, onEvent: (text) => say(text) },
  );
  const ended = new AbortController();
  const watch = setTimeout(() => ended.abort(), limitMs);
  let faults: readonly string[] = ['did not come to its end'];
  try {
    const inflicted = inflict(plan.faults, system.system, say, ended.signal);
    const [submissions] = await Promise.all([
      submitAll(system, plan.jobs, { pipe: starts.pipe, overMs: windowMs, ended: ended.signal }),
      inflicted.finished,
    ]);
    say(`all submitted, ${inflicted.done} faults done, ${starts.total} starts so far`);
    await untilAllEnded(system, jobs, ended.signal);
    const unsaid = await busFaults(system);
    // Not before the bus is empty: until then it holds events that are not recorded yet.
    const entries = await readOn(system, []);
    say(`the ledger has ${entries.length} records`);
    const broken = new Set([...inflicted.brokenExecutors].map((pid) => `${executorPrefix()}-${pid}`));
    const verdict = judge({ submissions, entries, startsOf: starts.of, broken: (name) => broken.has(name) });
    say(`outcomes: ${[...verdict.outcomes].map(([name, count]) => `${name} ${count}`).join(', ')}`);
    faults = [...verdict.faults, ...unsaid];
  } catch (error) {
    if (!ended.signal.aborted) throw error;
    faults = [`not at its end after ${minutes} minutes`];
  } finally {
    clearTimeout(watch);
    ended.abort();
    faults = [...faults, ...(await takeDown(system, starts, keep))];
  }
  for (const fault of faults.slice(0, 40)) say(`FAULT ${fault}`);
  say(
    faults.length === 0
      ? 'all holds'
      : `${faults.length} faults; again with: npm run test:crash -- --jobs ${jobs} --minutes ${minutes} --seed ${seed} --nodes ${nodes}`,
  );
  return faults.length === 0 ? 0 : 1;
}

const executorPrefix = () =>
  hostname()
    .replace(/[^A-Za-z0-9_-]/g, '-')
    .slice(0, 80);

/** Resolves when every job has its end in the ledger, or the time is over. */
async function untilAllEnded(system: TestSystem, jobs: number, over: AbortSignal): Promise<void> {
  const entries: Entry[] = [];
  const open = () =>
    jobs - new Set(entries.filter(({ record }) => isEnd(record.kind)).map(({ record }) => record.jobId)).size;
  for (let left = jobs; left > 0 && !over.aborted; left = open()) {
    try {
      await readOn(system, entries);
    } catch (error) {
      if (!(error instanceof OperationalError)) throw error;
      say(error.message);
    }
    say(`${open()} jobs are open`);
    await delay(2_000, undefined, { signal: over }).catch(() => undefined);
  }
}

/** Adds what the ledger has after these. */
async function readOn(system: TestSystem, entries: Entry[]): Promise<Entry[]> {
  const after = entries.at(-1)?.record.tenantSequence ?? -1;
  for await (const entry of system.client.records({ after, follow: false })) entries.push(entry);
  return entries;
}

const isEnd = (kind: string): boolean => terminalKinds.some((terminal) => terminal === kind);

/** SUBMISSIONS and JOBS are empty soon after the last job has ended. */
async function busFaults(system: TestSystem): Promise<string[]> {
  const bus = await connectAsDeployment(system);
  const giveUpAt = performance.now() + emptyMs;
  try {
    for (;;) {
      const states = await Promise.all(
        ['SUBMISSIONS', 'JOBS'].map(async (name) => ({ name, ...(await bus.streamState(name)) })),
      );
      const full = states.filter(({ messages }) => messages > 0);
      if (full.length === 0) return [];
      say(full.map(({ name, messages }) => `${name} has ${messages} messages`).join(', '));
      if (performance.now() > giveUpAt)
        return full.map(({ name, messages }) => `${name} still has ${messages} messages`);
      await delay(2_000);
    }
  } finally {
    await bus.close();
  }
}

async function takeDown(
  system: TestSystem,
  starts: Awaited<ReturnType<typeof countStarts>>,
  keep: boolean,
): Promise<string[]> {
  await system.client.close();
  await system.system.stop();
  const left = await leftOver(system.stateDir, [system.stateDir, starts.folder]);
  await starts.close();
  if (keep) say(`kept: ${system.stateDir}`);
  else await system.stop();
  return left.map((what) => `left behind: ${what}`);
}

process.exitCode = await crashTest(readOptions());
