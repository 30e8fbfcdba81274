/** The right edge of a growing tree: the roots it gives are held against the definition in merkle.test.ts. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { CompactRange, storedLevels, subtreesOf } from './compact-range.ts';
import { hashLeaf, hashNode } from './merkle.ts';

const leafOf = (index: number): Uint8Array => hashLeaf(Buffer.from(`leaf ${index}`));
const leavesOf = (count: number): Uint8Array[] => Array.from({ length: count }, (_, index) => leafOf(index));
/** RFC 6962, section 2.1. */
function mth(leaves: Uint8Array[]): Uint8Array {
  if (leaves.length === 1) return leaves[0] as Uint8Array;
  const k = 2 ** Math.ceil(Math.log2(leaves.length) - 1);
  return hashNode(mth(leaves.slice(0, k)), mth(leaves.slice(k)));
}

describe('a range', () => {
  test('goes on from its hashes as the one that they are from', () => {
    for (const size of [0, 1, 2, 3, 7, 8, 255, 256, 257]) {
      const first = CompactRange.empty();
      for (const leaf of leavesOf(size)) first.append(leaf);
      const second = CompactRange.of(first.size, first.hashes);
      for (let index = size; index < size + 20; index += 1) {
        first.append(leafOf(index));
        second.append(leafOf(index));
      }
      assert.deepEqual(second.root(), first.root());
      assert.deepEqual(first.root(), mth(leavesOf(size + 20)));
    }
  });

  test('tells each complete subtree of a stored level once, in order', () => {
    const told: string[] = [];
    const range = CompactRange.empty();
    for (const leaf of leavesOf(65_536 + 300))
      range.append(leaf, (level, number) => void told.push(`${level}/${number}`));
    const of8 = Array.from({ length: 257 }, (_, number) => `8/${number}`);
    assert.deepEqual(told, [...of8.slice(0, 256), '16/0', '8/256']);
    assert.deepEqual([...storedLevels], [8, 16, 24]);
  });

  test('a clone does not change with the original', () => {
    const range = CompactRange.empty();
    range.append(leafOf(0));
    const copy = range.clone();
    range.append(leafOf(1));
    assert.deepEqual([copy.size, copy.root()], [1, leafOf(0)]);
  });

  test('hashes of another size are refused', () => {
    assert.throws(() => CompactRange.of(3, [leafOf(0)]), /right edge of 3 leaves is 2 hashes, not 1/);
    assert.throws(() => CompactRange.of(1, [leafOf(0).subarray(1)]), /right edge/);
    assert.throws(() => CompactRange.of(-1, []), /cannot have -1/);
  });

  test('sizes beyond 32 bits have their subtrees too', () => {
    assert.deepEqual(subtreesOf(2 ** 40 + 2), [
      { level: 40, start: 0 },
      { level: 1, start: 2 ** 40 },
    ]);
    assert.deepEqual(subtreesOf(0), []);
  });
});
