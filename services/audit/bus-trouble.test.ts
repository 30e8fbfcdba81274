/** What happens to the bus happens under a running service; it goes on without a restart. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { connect } from 'nats';
import type { Fixture } from './fixture.ts';
import { askRecords, eventually, feed, fixture, newJob, stopTelemetry, submit } from './fixture.ts';

after(stopTelemetry);

async function deleteStream(f: Fixture, stream: string): Promise<void> {
  const connection = await connect({ servers: f.url });
  await (await connection.jetstreamManager()).streams.delete(stream);
  await connection.close();
}

const topology = { replicas: 1, sizeFactor: 0.1 };
const recorded = (f: Fixture, count: number) =>
  eventually(
    `${count} records`,
    async () => (await askRecords(f.bus, 'acme').catch(() => [])).length === count,
    30_000,
  );
const sequences = async (f: Fixture) => (await feed(f.bus)).map((one) => one.ledgerSequence);

test('the server restarts', async () => {
  await using f = await fixture();
  await f.startAudit();
  await submit(f.bus, newJob());
  await recorded(f, 1);
  await f.restartServer();
  await eventually('published', () => submit(f.bus, newJob()).catch(() => null), 30_000);
  await recorded(f, 2);
  assert.deepEqual(
    await eventually('fed', async () => (await feed(f.bus)).length === 2 && sequences(f)),
    [0, 1],
  );
});

test('AUDIT is not there: events are recorded all the same, and fed when it is', async () => {
  await using f = await fixture();
  await deleteStream(f, 'AUDIT');
  await f.startAudit();
  for (let i = 0; i < 3; i++) await submit(f.bus, newJob());
  await recorded(f, 3);
  await eventually('acks', async () => (await f.bus.ackFloor('SUBMISSIONS', 'audit')) === 3);
  await f.bus.ensureTopology(topology);
  assert.deepEqual(
    await eventually('fed', async () => (await feed(f.bus)).length === 3 && sequences(f)),
    [0, 1, 2],
  );
});

test('SUBMISSIONS is made anew: its sequences begin again and nothing is taken for known', async () => {
  await using f = await fixture();
  await f.startAudit();
  for (let i = 0; i < 3; i++) await submit(f.bus, newJob());
  await recorded(f, 3);
  await deleteStream(f, 'SUBMISSIONS');
  await f.bus.ensureTopology(topology);
  for (let i = 0; i < 3; i++) assert.equal((await submit(f.bus, newJob())).sequence, i + 1);
  await recorded(f, 6);
});
