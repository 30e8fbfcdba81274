/** A tenant is held to its concurrency, also by a router that has just been started again; what is held ends all the same. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { defaultPolicy } from '../../services/cli/default-policy.ts';
import { encodePolicy } from '../../services/trust/index.ts';
import { eventually } from '../with-nats.ts';
import type { TestSystem } from '../with-system.ts';
import { finished, startTestSystem } from '../with-system.ts';

let system: TestSystem;
before(async () => {
  system = await startTestSystem({ SANDBUS_SLOTS: '6' });
  const limited = encodePolicy({ ...defaultPolicy, tenants: { acme: { concurrency: 2 } } });
  assert.ok(limited.ok);
  await writeFile(join(system.stateDir, 'policy.json'), limited.value);
});
after(() => system.stop());

async function submit(seconds: number): Promise<string> {
  const bytes = Buffer.from('sleep $1\n');
  const plugin = { name: 'sleep.sh', bytes };
  const envelope = system.sign(plugin.name, bytes);
  const { jobId } = await system.client.submit({ plugin, envelope, args: [String(seconds)] });
  return jobId;
}

/** The most jobs that were under way at one time, by the order of the ledger. */
async function mostAtOnce(): Promise<number> {
  const running = new Set<string>();
  let most = 0;
  for await (const { record } of system.client.records({ follow: false })) {
    if (record.kind === 'started') running.add(record.jobId);
    if (record.kind === 'finished') running.delete(record.jobId);
    most = Math.max(most, running.size);
  }
  return most;
}

test('six jobs, two at a time; the router is killed in the middle', async () => {
  const jobs: string[] = [];
  for (let i = 0; i < 6; i++) jobs.push(await submit(0.7));
  await eventually('two have started', async () => (await mostAtOnce()) === 2);
  process.kill(system.system.pidOf('router'), 'SIGKILL');
  for (const jobId of jobs) assert.equal(finished(await system.client.wait(jobId)).outcome, 'exited');
  assert.equal(await mostAtOnce(), 2);
});

test('a held job is cancelled, and those behind it go on', async () => {
  const [first, second] = [await submit(3), await submit(3)];
  // Submissions are verified side by side: one that came later may be routed first.
  for (const jobId of [first, second])
    await eventually('started', async () => (await system.client.job(jobId))?.state === 'started');
  const [held, last] = [await submit(0), await submit(0)];
  await eventually('verified', async () => (await system.client.job(held))?.state === 'verified');
  await system.client.cancel(held, 'no patience');
  assert.equal((await system.client.wait(held)).kind, 'cancelled');
  for (const jobId of [first, second, last])
    assert.equal(finished(await system.client.wait(jobId)).outcome, 'exited');
});
