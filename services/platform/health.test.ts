/** Health over HTTP, on a real server from which things are deleted. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { connect } from 'nats';
import type { TestNats } from '../../test/with-nats.ts';
import { freeze, startTestNats } from '../../test/with-nats.ts';
import { Health, serveHealth } from './health.ts';

let nats: TestNats;
let health: Health;
let served: Awaited<ReturnType<typeof serveHealth>>;
before(async () => {
  nats = await startTestNats();
  health = new Health('router', nats.bus);
  served = await serveHealth(health, { host: '127.0.0.1', port: 0 });
});
after(async () => {
  await served.stop();
  await nats.stop();
});

async function ask(path: string) {
  const response = await fetch(`http://127.0.0.1:${served.port}${path}`);
  return { status: response.status, body: (await response.json()) as { reasons?: string[] } };
}

async function administer(
  what: (
    manager: Awaited<ReturnType<Awaited<ReturnType<typeof connect>>['jetstreamManager']>>,
  ) => Promise<unknown>,
) {
  const connection = await connect({ servers: nats.url });
  await what(await connection.jetstreamManager());
  await connection.close();
}

test('a service that starts is live and not ready', async () => {
  assert.equal((await ask('/livez')).status, 200);
  const { status, body } = await ask('/readyz');
  assert.deepEqual([status, body.reasons], [503, ['it is starting']]);
});

test('ready, until something is deleted; then it says what, and is ready when it is there again', async () => {
  health.watch([]);
  assert.equal((await ask('/readyz')).status, 200);
  await administer((manager) => manager.consumers.delete('JOBS', 'router'));
  const { status, body } = await ask('/readyz');
  assert.equal(status, 503);
  assert.match(body.reasons?.join() ?? '', /consumer router of JOBS is missing: `sandbus up`/);
  await nats.bus.ensureTopology({ replicas: 1, sizeFactor: 0.1 });
  assert.equal((await ask('/readyz')).status, 200);
});

test('a reason of the service itself', async () => {
  health.watch([() => null, () => 'no policy']);
  assert.deepEqual((await ask('/readyz')).body.reasons, ['no policy']);
});

test('a server that stands still', async () => {
  health.watch([]);
  await freeze(nats.server.pid);
  try {
    assert.match((await ask('/readyz')).body.reasons?.join() ?? '', /NATS has not answered/);
  } finally {
    // A server that stands still would not end either.
    nats.server.kill('SIGCONT');
  }
});

test('other paths are not there', async () => assert.equal((await ask('/')).status, 404));
