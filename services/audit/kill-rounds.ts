/** Kills real audit processes while events come, each time at another moment; then looks whether all is there, once. */
import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { readVerifierKey } from '../ledger/log-key.ts';
import { openReader } from '../ledger/open.ts';
import { verifyLedger } from '../ledger/verify.ts';
import { stopChild } from '../platform/process.ts';
import { headerNames } from '../platform/topology.ts';
import { startProcess } from './audit-process.ts';
import type { Fixture } from './fixture.ts';
import { cancelled, eventually, feed, newJob, say, submit } from './fixture.ts';

export interface KillRounds {
  readonly kills: number;
  /** Jobs of two events that are published during each life of the process. */
  readonly jobsPerLife: number;
  /** Where the ledger is, and in the environment of the process. */
  readonly location: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** What a dead process held unacked comes again only after the ack wait of 30 s. */
const patienceMs = 100_000;
const longestLifeMs = 150;

export async function killRounds(f: Fixture, rounds: KillRounds): Promise<void> {
  const { kills, jobsPerLife, location, env = {} } = rounds;
  const jobs: string[] = [];
  for (let round = 0; round < kills; round++) {
    const child = await startProcess(f, env);
    const publishing = (async () => {
      for (let i = 0; i < jobsPerLife; i++) {
        const job = newJob();
        jobs.push(job.jobId);
        await say(f.bus, job, 'cancelled', cancelled(job), await submit(f.bus, job));
      }
    })();
    // At another moment of the work each time: between commit and ack, commit and feed, deletion and note.
    await delay((15 * round) % longestLifeMs);
    child.kill('SIGKILL');
    await Promise.all([child.exited, publishing]);
  }
  const child = await startProcess(f, env);
  await isWhole(f, jobs);
  assert.equal((await stopChild(child, 5000)).code, 0);
  const reader = await openReader(location);
  const { ok, size, findings } = await verifyLedger(reader, { key: readVerifierKey(f.verifierKeyFile) });
  await reader.close();
  assert.deepEqual({ ok, size, findings }, { ok: true, size: 2 * jobs.length, findings: [] });
}

/** The feed has both events of each job once, in order; and what has ended has left the bus. */
async function isWhole(f: Fixture, jobs: readonly string[]): Promise<void> {
  const total = 2 * jobs.length;
  const newest = async () =>
    (await f.bus.lastMessage('AUDIT', 'audit.>'))?.headers[headerNames.ledgerSequence] === `${total - 1}`;
  await eventually('everything in the feed', newest, patienceMs);
  const all = await feed(f.bus);
  assert.deepEqual(
    all.map((one) => one.ledgerSequence),
    Array.from({ length: total }, (_, i) => i),
  );
  const kinds = new Map(jobs.map((jobId) => [jobId, [] as string[]]));
  for (const { record } of all) kinds.get(record.jobId)?.push(record.kind);
  for (const [jobId, seen] of kinds) assert.deepEqual(seen, ['submitted', 'cancelled'], jobId);
  const isEmpty = async () => (await f.bus.streamState('JOBS')).messages === 0;
  await eventually('JOBS is empty', isEmpty, patienceMs);
}
