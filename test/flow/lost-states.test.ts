/** The states of the jobs are deleted while jobs run, wait and are held: each ends all the same, and no user code runs twice. */
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { connect, nkeyAuthenticator } from 'nats';
import { defaultPolicy } from '../../services/cli/default-policy.ts';
import { userCredentials } from '../../services/platform/access-paths.ts';
import { seedIn } from '../../services/platform/nats/nkeys.ts';
import { inboxPrefix } from '../../services/platform/nats-permissions.ts';
import { terminalKinds } from '../../services/platform/topology.ts';
import { encodePolicy } from '../../services/trust/index.ts';
import { countStarts } from '../crash/starts.ts';
import { eventually } from '../with-nats.ts';
import type { TestSystem } from '../with-system.ts';
import { startTestSystem } from '../with-system.ts';

let system: TestSystem;
let starts: Awaited<ReturnType<typeof countStarts>>;
before(async () => {
  starts = await countStarts();
  const environment = { SANDBUS_LEASE_MS: '6000', SANDBUS_SLOTS: '2', SANDBUS_BASH: starts.bash };
  system = await startTestSystem(environment);
  const limited = encodePolicy({ ...defaultPolicy, tenants: { acme: { concurrency: 3 } } });
  assert.ok(limited.ok);
  await writeFile(join(system.stateDir, 'policy.json'), limited.value);
});
after(async () => {
  await system.stop();
  await starts.close();
});

async function submit(seconds: number): Promise<string> {
  const bytes = Buffer.from(`echo "$SANDBUS_JOB_ID" > ${starts.pipe}; sleep $1; echo done\n`);
  const plugin = { name: 'sleep.sh', bytes };
  const envelope = system.sign(plugin.name, bytes);
  return (await system.client.submit({ plugin, envelope, args: [String(seconds)] })).jobId;
}

const statesOf = (jobs: readonly string[]) =>
  Promise.all(jobs.map(async (jobId) => (await system.client.job(jobId))?.state));

async function deleteStates(): Promise<void> {
  const seed = seedIn(await readFile(userCredentials(system.stateDir, 'deployment'), 'utf8')) ?? '';
  const authenticator = nkeyAuthenticator(Buffer.from(seed));
  const connection = await connect({
    servers: system.url,
    inboxPrefix: inboxPrefix('deployment'),
    authenticator,
  });
  await (await connection.jetstreamManager()).streams.delete('KV_jobs');
  await connection.close();
}

test('running, waiting and held jobs end, each once', { timeout: 120_000 }, async () => {
  const running = [await submit(30), await submit(30)];
  await eventually('two run', async () => (await statesOf(running)).join() === 'started,started', 30_000);
  // Which of these gets the third place is not said: they are verified side by side.
  const others = [await submit(0), await submit(0), await submit(0)];
  await eventually(
    'one waits for an executor, two are held',
    async () => (await statesOf(others)).sort().join() === 'routed,verified,verified',
    30_000,
  );
  const states = await statesOf(others);
  const cancelled = others[states.indexOf('verified')] ?? '';
  const waiting = others.filter((jobId) => jobId !== cancelled);
  await deleteStates();
  await system.client.cancel(cancelled, 'while nobody knows it').catch(() => undefined);
  for (const jobId of [...running, ...others]) await system.client.wait(jobId);

  const ends = new Map<string, string[]>();
  for await (const { record, event } of system.client.records({ follow: false })) {
    // By this the tenant is held to its limit, whatever else the router has forgotten.
    if (event?.name === 'JobVerified') assert.equal(event.value.concurrency, 3);
    if (terminalKinds.some((kind) => kind === record.kind)) {
      const outcome = event?.name === 'JobFinished' ? event.value.outcome : record.kind;
      ends.set(record.jobId, [...(ends.get(record.jobId) ?? []), outcome]);
    }
  }
  // Their executor could not renew its lease, and ended them: user code that has started is not started again.
  for (const jobId of running) assert.deepEqual(ends.get(jobId), ['executor_lost']);
  for (const jobId of waiting) assert.deepEqual(ends.get(jobId), ['exited']);
  assert.deepEqual(ends.get(cancelled), ['cancelled']);
  for (const jobId of [...running, ...waiting]) assert.equal(starts.of(jobId), 1, jobId);
  assert.equal(starts.of(cancelled), 0);
});
