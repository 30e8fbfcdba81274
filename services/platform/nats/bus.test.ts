/** What the server answers, and what we make of it. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { TestNats } from '../../../test/with-nats.ts';
import { freeze, startTestNats } from '../../../test/with-nats.ts';
import { Bus } from './bus.ts';

let nats: TestNats;
before(async () => {
  nats = await startTestNats();
});
after(() => nats.stop());

test('a connection that loses the server while it is closed is closed, and tries no more', async () => {
  const own = await startTestNats();
  const bus = await Bus.connect({ url: own.url, name: 'leaver', credentials: null });
  await freeze(own.server.pid);
  const closing = bus.close();
  own.server.kill('SIGKILL');
  await closing;
  assert.equal(bus.isClosed, true);
  await own.stop();
  assert.equal(own.bus.isClosed, true);
});

test('a message that is gone already is no failure to delete it, in the middle of a stream and at its ends', async () => {
  const { bus } = nats;
  const sequences: number[] = [];
  for (let i = 0; i < 4; i++) sequences.push((await bus.publish('log.a.b.c', Buffer.from('x'))).sequence);
  for (const sequence of [2, 1, 4, 3].map((place) => sequences[place - 1] ?? 0)) {
    assert.equal(await bus.deleteMessage('LOGS', sequence), true);
    assert.equal(await bus.deleteMessage('LOGS', sequence), false);
  }
  assert.equal(await bus.deleteMessage('LOGS', 999), false);
});
