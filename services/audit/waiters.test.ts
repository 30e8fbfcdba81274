import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Waiters } from './waiters.ts';

test('waiting is bounded, in all and for each tenant, and places come back', () => {
  const waiters = new Waiters({ total: 3, perTenant: 2 });
  const leave = [waiters.enter('a'), waiters.enter('a')];
  assert.throws(() => waiters.enter('a'), /too many requests wait/);
  leave.push(waiters.enter('b'));
  assert.throws(() => waiters.enter('c'), /too many requests wait/);
  for (const go of leave) go();
  waiters.enter('a');
});

test('a wake reaches those who wait for that key, and nobody is left behind at the end', async () => {
  const waiters = new Waiters({ total: 3, perTenant: 2 });
  const [one, other] = [waiters.ticket('x', 60_000), waiters.ticket('y', 60_000)];
  waiters.wake('x');
  assert.equal(await one.woken, true);
  waiters.close();
  assert.equal(await other.woken, true);
  assert.equal(await waiters.ticket('z', 60_000).woken, false);
});
