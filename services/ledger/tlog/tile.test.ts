/** Tiles: the paths and the example of the specification, and that a monitor who has only tiles comes to the same root. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { CompactRange } from './compact-range.ts';
import { MemoryHashes, MemoryLog } from './fixture.ts';
import { leafBytes } from './leaf.ts';
import { hashBytes, hashLeaf, hashNode } from './merkle.ts';
import type { Tile } from './tile.ts';
import { entryBundle, isInTree, parseTilePath, tileBytes, tilePath, tileWidth } from './tile.ts';

const paths: readonly [path: string, tile: Tile][] = [
  ['tile/0/000', { level: 0, number: 0, width: 256 }],
  ['tile/1/x001/x234/067', { level: 1, number: 1_234_067, width: 256 }],
  ['tile/0/273.p/112', { level: 0, number: 273, width: 112 }],
  ['tile/63/999.p/1', { level: 63, number: 999, width: 1 }],
  ['tile/0/x001/000.p/255', { level: 0, number: 1000, width: 255 }],
  ['tile/entries/x123/x456/789', { level: null, number: 123_456_789, width: 256 }],
];
const noPaths = [
  ...[
    '',
    'tile',
    'tile/0',
    'tile/0/',
    'tile/0/0',
    'tile/0/00',
    'tile/0/0000',
    'tile/0/x000/000',
    'tile/0/001/002',
  ],
  ...[
    'tile/00/000',
    'tile/-1/000',
    'tile/100/000',
    'tile/data/000',
    '/tile/0/000',
    'tile/0/000/',
    'tile/0/x000',
  ],
  ...[
    'tile/0/000.p/0',
    'tile/0/000.p/256',
    'tile/0/000.p/01',
    'tile/0/000.p/',
    'tile/0/000.p',
    'tile/0/..',
    'tile/0/000\n',
  ],
  `tile/0/${'x999/'.repeat(6)}999`,
];

describe('a path', () => {
  for (const [path, tile] of paths)
    test(path, () => {
      assert.equal(tilePath(tile), path);
      assert.deepEqual(parseTilePath(path), tile);
    });
  for (const path of noPaths)
    test(`${JSON.stringify(path)} is none`, () => assert.equal(parseTilePath(path), null));
});

describe('a tree of 70,000 leaves', async () => {
  const size = 70_000;
  const source = MemoryHashes.of(
    Array.from({ length: size }, (_, index) => hashLeaf(Buffer.from(String(index)))),
  );
  const tile = (level: number, number: number, width = tileWidth) =>
    tileBytes(source, { level, number, width }, size);

  /** Level → whole tiles and the width of the partial one, as the specification counts them. */
  const example: readonly [level: number, whole: number, partial: number][] = [
    [0, 273, 112],
    [1, 1, 17],
    [2, 0, 1],
  ];
  for (const [level, whole, partial] of example)
    test(`has ${whole} whole tiles and one of ${partial} on level ${level}`, async () => {
      assert.equal((await tile(level, whole, partial))?.length, partial * hashBytes);
      assert.equal(await tile(level, whole, partial + 1), null);
      assert.equal(await tile(level, whole + 1, 1), null);
      if (whole > 0) assert.equal((await tile(level, whole - 1))?.length, tileWidth * hashBytes);
    });

  test('has the hash of each whole tile on the level above, and the root over all of them', async () => {
    for (const [level, whole] of example.slice(0, 2))
      for (let number = 0; number < whole; number += 1) {
        const above = await tile(level + 1, Math.floor(number / tileWidth), (number % tileWidth) + 1);
        assert.deepEqual(above?.subarray(-hashBytes), rootOf(hashesIn(await tile(level, number))));
      }
    const range = CompactRange.empty();
    for (let number = 0; number <= 273; number += 1)
      for (const hash of hashesIn(await tile(0, number, number === 273 ? 112 : tileWidth)))
        range.append(hash);
    assert.deepEqual(range.root(), source.range.root());
  });

  test('has nothing on levels that nothing is stored of', async () => {
    assert.equal(await tile(4, 0, 1), null);
    assert.equal(isInTree({ level: 4, number: 0, width: 1 }, 2 ** 33), false);
  });

  test('gives nothing where a store lacks hashes', async () => {
    assert.equal(
      await tileBytes({ hashes: async () => [] }, { level: 0, number: 0, width: 256 }, size),
      null,
    );
  });
});

test('entries are what the tree hashes, each after its length', () => {
  const log = new MemoryLog();
  const job = { tenant: 'acme', jobId: '0198c2f0-0000-7000-8000-000000000001' };
  const records = [log.add(job, 'submitted'), log.add(job, 'verified'), log.add(job, 'routed')];
  const bundle = Buffer.from(entryBundle(records));
  let at = 0;
  for (const record of records) {
    const length = bundle.readUInt16BE(at);
    const entry = bundle.subarray(at + 2, at + 2 + length);
    assert.deepEqual(entry, Buffer.from(leafBytes(record)));
    assert.deepEqual(hashLeaf(entry), record.leafHash);
    at += 2 + length;
  }
  assert.equal(at, bundle.length);
  const huge = { ...records[0], subject: 'x'.repeat(70_000) } as (typeof records)[0];
  assert.throws(() => entryBundle([huge]), /a bundle holds 65535/);
});

function hashesIn(bytes: Uint8Array | null): Uint8Array[] {
  const count = (bytes?.length ?? 0) / hashBytes;
  return Array.from(
    { length: count },
    (_, at) => bytes?.subarray(at * hashBytes, (at + 1) * hashBytes) as Uint8Array,
  );
}

function rootOf(hashes: readonly Uint8Array[]): Uint8Array {
  const [first, ...rest] = hashes;
  if (first === undefined || rest.length === 0) return first ?? new Uint8Array();
  const half = hashes.length / 2;
  return hashNode(rootOf(hashes.slice(0, half)), rootOf(hashes.slice(half)));
}
