import assert from 'node:assert/strict';
import { mkdir, readdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, beforeEach, describe, test } from 'node:test';
import type { TestNats } from '../../test/with-nats.ts';
import { startTestNats } from '../../test/with-nats.ts';
import type { ObjectBucket } from '../platform/nats/objects.ts';
import { objectKey } from '../platform/topology.ts';
import type { Wanted } from './content-store.ts';
import { ContentStore } from './content-store.ts';
import { digest } from './fixture.ts';

let nats: TestNats;
let bucket: ObjectBucket;
let cache: string;
let out: string;
before(async () => {
  nats = await startTestNats();
  bucket = await nats.bus.objects('plugins');
});
after(() => nats.stop());
let round = 0;
beforeEach(async () => {
  round += 1;
  cache = join(nats.folder, `cache-${round}`);
  out = join(nats.folder, `out-${round}`);
  await mkdir(out);
});

async function opened(limitBytes?: number): Promise<ContentStore> {
  const store = new ContentStore(cache, bucket, limitBytes);
  await store.open();
  return store;
}

async function upload(text: string): Promise<Wanted> {
  const bytes = Buffer.from(text);
  await bucket.put(objectKey('acme', digest(bytes)), [bytes]);
  return { tenant: 'acme', sha256: digest(bytes), size: bytes.length };
}
const keyOf = ({ tenant, sha256 }: Wanted) => objectKey(tenant, sha256);
const read = (name: string) => readFile(join(out, name), 'utf8');

describe('bytes by digest', () => {
  test('come from the bus once, then from the disk', async () => {
    const store = await opened();
    const wanted = await upload(`once ${round}`);
    assert.equal(await store.place(wanted, join(out, 'a')), null);
    await bucket.delete(keyOf(wanted));
    assert.equal(await store.place(wanted, join(out, 'b')), null);
    assert.deepEqual([await read('a'), await read('b')], [`once ${round}`, `once ${round}`]);
  });

  test('that many jobs want at one time are fetched once', async () => {
    const store = await opened();
    const wanted = await upload('x'.repeat(1_000_000));
    const places = Array.from({ length: 10 }, (_, i) => store.place(wanted, join(out, String(i))));
    assert.deepEqual(new Set(await Promise.all(places)), new Set([null]));
    assert.deepEqual(await readdir(cache), [keyOf(wanted)]);
  });

  test('that changed on the disk are fetched again', async () => {
    const store = await opened();
    const wanted = await upload(`intact ${round}`);
    await store.place(wanted, join(out, 'a'));
    await writeFile(join(cache, keyOf(wanted)), `broken ${round}`);
    await rm(join(out, 'a'));
    assert.equal(await store.place(wanted, join(out, 'a')), null);
    assert.equal(await read('a'), `intact ${round}`);
    await truncate(join(cache, keyOf(wanted)), 3);
    assert.equal(await store.place(wanted, join(out, 'b')), null);
    assert.equal(await read('b'), `intact ${round}`);
  });

  test('stay with the job when the cache forgets them', async () => {
    const store = await opened(2_000);
    const first = await upload('1'.repeat(1_500));
    await store.place(first, join(out, 'a'));
    await store.place(await upload('2'.repeat(1_500)), join(out, 'b'));
    assert.equal(await stat(join(cache, keyOf(first))).catch(() => null), null);
    assert.equal((await read('a')).length, 1_500);
  });
});

describe('bytes that cannot be had, with the reason', () => {
  const absent = { tenant: 'acme', sha256: digest(Buffer.from('absent')), size: 6 };
  const cases: [what: string, prepare: () => Promise<Wanted>, expected: RegExp][] = [
    ['not in the store', async () => absent, /no object/],
    [
      'of another size',
      async () => ({ ...(await upload('sized')), size: 4 }),
      /has 5 bytes, 4 were verified/,
    ],
    [
      'other bytes under this digest',
      async () => {
        const wanted = { tenant: 'acme', sha256: digest(Buffer.from(`right ${round}`)), size: 7 };
        await bucket.put(keyOf(wanted), [Buffer.from('wrong ..')]);
        return { ...wanted, size: 8 };
      },
      /upload it again/,
    ],
    ['inline, other bytes', async () => ({ ...absent, inline: Buffer.from('ABSENT') }), /announced/],
  ];
  for (const [what, prepare, expected] of cases)
    test(what, async () => {
      const store = await opened();
      assert.match((await store.place(await prepare(), join(out, 'a'))) ?? 'taken', expected);
      assert.deepEqual(await readdir(out), []);
      assert.deepEqual(await readdir(cache), []);
    });
});
