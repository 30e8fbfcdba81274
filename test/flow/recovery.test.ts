/** What happens to the bus under a running system; it goes on by itself. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import { connect, nkeyAuthenticator } from 'nats';
import { userCredentials } from '../../services/platform/access-paths.ts';
import { OperationalError } from '../../services/platform/errors.ts';
import { seedIn } from '../../services/platform/nats/nkeys.ts';
import { inboxPrefix } from '../../services/platform/nats-permissions.ts';
import { eventually } from '../with-nats.ts';
import type { TestSystem } from '../with-system.ts';
import { finished, startTestSystem, text } from '../with-system.ts';

let system: TestSystem;
before(async () => {
  system = await startTestSystem();
});
after(() => system.stop());

async function runsAgain(): Promise<void> {
  const bytes = Buffer.from('echo again\n');
  const plugin = { name: 'again.sh', bytes };
  let jobId = '';
  await eventually(
    'a job is taken',
    async () => {
      try {
        jobId = (await system.client.submit({ plugin, envelope: system.sign(plugin.name, bytes) })).jobId;
        return true;
      } catch (error) {
        if (!(error instanceof OperationalError)) throw error;
        return false;
      }
    },
    60_000,
  );
  assert.equal(text(finished(await system.client.wait(jobId)).stdout.inline), 'again\n');
}

async function administer(what: 'consumer' | 'stream', stream: string, durable = ''): Promise<void> {
  const seed = seedIn(await readFile(userCredentials(system.stateDir, 'deployment'), 'utf8')) ?? '';
  const connection = await connect({
    servers: system.url,
    inboxPrefix: inboxPrefix('deployment'),
    authenticator: nkeyAuthenticator(Buffer.from(seed)),
  });
  const manager = await connection.jetstreamManager();
  if (what === 'stream') await manager.streams.delete(stream);
  else await manager.consumers.delete(stream, durable);
  await connection.close();
}

const faults: [what: string, fault: () => Promise<void> | void][] = [
  ['the server is killed', () => void process.kill(system.system.pidOf('nats-server'), 'SIGKILL')],
  ['the consumer of the verifier is deleted', () => administer('consumer', 'SUBMISSIONS', 'verifier')],
  ['the consumer of the router is deleted', () => administer('consumer', 'JOBS', 'router')],
  ['the consumer of a route is deleted', () => administer('consumer', 'JOBS', 'work-bash-cpu')],
  ['a consumer of audit is deleted', () => administer('consumer', 'JOBS', 'audit')],
  ['the stream of submissions is deleted', () => administer('stream', 'SUBMISSIONS')],
  ['the stream of jobs is deleted', () => administer('stream', 'JOBS')],
  ['the feed is deleted', () => administer('stream', 'AUDIT')],
  ['the states of the jobs are deleted', () => administer('stream', 'KV_jobs')],
  ['the store of plugins is deleted', () => administer('stream', 'OBJ_plugins')],
];
for (const [what, fault] of faults)
  test(`${what}: the next job runs`, async () => {
    await fault();
    await runsAgain();
  });

test('the network is cut for longer than a connection is trusted: the next job runs', {
  timeout: 150_000,
}, async () => {
  const pid = system.system.pidOf('nats-server');
  process.kill(pid, 'SIGSTOP');
  await new Promise((resolve) => setTimeout(resolve, 25_000));
  process.kill(pid, 'SIGCONT');
  await runsAgain();
});
