/** What objects do when two write at once, and what becomes of them when their time is over. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, test } from 'node:test';
import type { TestNats } from '../../../test/with-nats.ts';
import { startTestNats } from '../../../test/with-nats.ts';
import { keepMsOf } from '../topology.ts';
import type { ObjectBucket } from './objects.ts';

let nats: TestNats;
let bucket: ObjectBucket;
before(async () => {
  nats = await startTestNats();
  bucket = await nats.bus.objects('plugins');
});
after(() => nats.stop());

const hourMs = 3_600_000;
const none: ReadonlySet<string> = new Set();
const messages = async () => (await nats.bus.streamState('OBJ_plugins')).messages;
const collect = (nowMs: number) => bucket.collect(nowMs, none, none);

test('an object is kept for its time, and longer when somebody asks; then nothing of it is left', async () => {
  const now = Date.now();
  await bucket.put('acme.short', [Buffer.from('short')], { keepUntilMs: now + hourMs });
  await bucket.put('acme.usual', [Buffer.from('usual')]);
  await bucket.put('acme.asked', [Buffer.from('asked')], { keepUntilMs: now + hourMs });
  assert.equal(await bucket.keep('acme.asked', now + 100 * hourMs), true);
  assert.deepEqual((await collect(now)).removed, []);
  assert.deepEqual((await collect(now + 2 * hourMs)).removed, ['acme.short']);
  assert.deepEqual((await collect(now + keepMsOf('plugins') + hourMs)).removed, ['acme.usual']);
  const asked = createHash('sha256').update('asked').digest('hex');
  assert.equal(await bucket.read('acme.asked', asked, () => undefined), true);
  await bucket.delete('acme.asked');
  assert.equal(await bucket.keep('acme.asked'), false);
  assert.equal(await messages(), 0);
});

test('of two writers of one key the first wins, and the chunks of the other are gone', async () => {
  const bytes = Buffer.from('same');
  await Promise.all([bucket.put('acme.same', [bytes]), bucket.put('acme.same', [bytes])]);
  assert.equal(await messages(), 2);
  await bucket.delete('acme.same');
});

test('chunks that belong to no object are removed at the second look, unless somebody still adds to them', async () => {
  const [left, growing] = [bucket.begin(), bucket.begin()];
  for (const id of [left, growing]) assert.notEqual(await bucket.append(id, Buffer.from('x'), 0), null);
  const first = await bucket.collect(0, new Set([growing]), none);
  assert.deepEqual([first.dropped, [...first.suspects]], [[], [left]]);
  const second = await bucket.collect(0, new Set([growing]), first.suspects);
  assert.deepEqual([second.dropped, [...second.suspects]], [[left], []]);
  assert.notEqual(await bucket.chunkAfter(growing, 0), null);
  await bucket.drop(growing);
});

test('a chunk is added only after the one that is last', async () => {
  const id = bucket.begin();
  const first = (await bucket.append(id, Buffer.from('1'), 0)) ?? assert.fail();
  assert.equal(await bucket.append(id, Buffer.from('x'), 0), null);
  assert.notEqual(await bucket.append(id, Buffer.from('2'), first), null);
  await bucket.drop(id);
});
