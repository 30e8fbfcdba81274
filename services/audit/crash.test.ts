/** A real audit process, killed again and again while events come: nothing is lost, nothing is doubled. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { stopChild } from '../platform/process.ts';
import { headerNames } from '../platform/topology.ts';
import { startProcess } from './audit-process.ts';
import { cancelled, eventually, feed, fixture, newJob, say, stopTelemetry, submit } from './fixture.ts';

after(stopTelemetry);

// Longer than the default: what a dead process held unacked comes again only after the ack wait of 30 s.
const options = { timeout: 1100_000 };

test(
  'kills between commit and ack, between commit and feed, between deletion and note',
  options,
  async () => {
    await using f = await fixture();
    const kills = 6;
    const perRound = 60;
    const jobs: string[] = [];
    for (let round = 0; round < kills; round++) {
      const child = await startProcess(f);
      const publishing = (async () => {
        for (let i = 0; i < perRound; i++) {
          const job = newJob();
          jobs.push(job.jobId);
          await say(f.bus, job, 'cancelled', cancelled(job), await submit(f.bus, job));
        }
      })();
      // At another moment of the work each time.
      await delay(15 * round);
      child.kill('SIGKILL');
      await Promise.all([child.exited, publishing]);
    }
    const child = await startProcess(f);
    const total = 2 * kills * perRound;
    await eventually(
      'everything in the feed',
      async () =>
        (await f.bus.lastMessage('AUDIT', 'audit.>'))?.headers[headerNames.ledgerSequence] === `${total - 1}`,
      100_000,
    );
    const all = await feed(f.bus);
    assert.deepEqual(
      all.map((one) => one.ledgerSequence),
      Array.from({ length: total }, (_, i) => i),
    );
    const kinds = new Map(jobs.map((jobId) => [jobId, [] as string[]]));
    for (const { record } of all) kinds.get(record.jobId)?.push(record.kind);
    for (const [jobId, seen] of kinds) assert.deepEqual(seen, ['submitted', 'cancelled'], jobId);
    await eventually('JOBS is empty', async () => (await f.bus.streamState('JOBS')).messages === 0);
    assert.equal((await stopChild(child, 5000)).code, 0);
  },
);
