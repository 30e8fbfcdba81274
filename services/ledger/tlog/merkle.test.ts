/** The tree against the published vectors, and against the definitions of RFC 6962 written down as they stand. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { CompactRange } from './compact-range.ts';
import { MemoryHashes } from './fixture.ts';
import { checkConsistency, checkInclusion, emptyRoot, hashLeaf } from './merkle.ts';
import { compactRangeAt, consistencyProof, inclusionProof, MissingHashes, rootOf } from './proofs.ts';

const VECTORS = new URL('../../../../shared/vectors/rfc6962-proofs.json', import.meta.url);

interface InclusionVector {
  readonly case: string;
  readonly leafIdx: number;
  readonly treeSize: number;
  readonly root: string;
  readonly leafHash: string;
  readonly proof: string[] | null;
  readonly wantErr: boolean;
}
interface ConsistencyVector {
  readonly case: string;
  readonly size1: number;
  readonly size2: number;
  readonly root1: string;
  readonly root2: string;
  readonly proof: string[] | null;
  readonly wantErr: boolean;
}

const base64 = (text: string): Uint8Array => Buffer.from(text, 'base64');
const path = (proof: string[] | null): Uint8Array[] => (proof ?? []).map(base64);

test('all vectors of transparency-dev agree', {
  skip: existsSync(VECTORS) ? false : 'no ../shared/vectors here',
}, () => {
  const vectors: { inclusion: InclusionVector[]; consistency: ConsistencyVector[] } = JSON.parse(
    readFileSync(VECTORS, 'utf8'),
  );
  for (const { case: name, leafIdx, treeSize, proof, wantErr, ...more } of vectors.inclusion) {
    const claim = {
      index: leafIdx,
      size: treeSize,
      leafHash: base64(more.leafHash),
      root: base64(more.root),
    };
    assert.equal(checkInclusion(claim, path(proof)).ok, !wantErr, name);
  }
  for (const { case: name, size1, size2, root1, root2, proof, wantErr } of vectors.consistency) {
    const [older, newer] = [
      { size: size1, root: base64(root1) },
      { size: size2, root: base64(root2) },
    ];
    assert.equal(checkConsistency(older, newer, path(proof)).ok, !wantErr, name);
  }
  assert.equal(vectors.inclusion.length + vectors.consistency.length, 196);
});

/** Roots of the eight leaves that all implementations of certificate transparency are tested with, by tree size. */
const knownLeaves = [
  '',
  '00',
  '10',
  '2021',
  '3031',
  '40414243',
  '5051525354555657',
  '606162636465666768696a6b6c6d6e6f',
];
const knownRoots = [
  'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
  '6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d',
  'fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125',
  'aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77',
  'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
  '4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4',
  '76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef',
  'ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c',
  '5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328',
];

test('the roots of the well-known leaves', () => {
  const range = CompactRange.empty();
  for (const [size, root] of knownRoots.entries()) {
    assert.equal(Buffer.from(range.root()).toString('hex'), root, `${size} leaves`);
    const leaf = knownLeaves[size];
    if (leaf !== undefined) range.append(hashLeaf(Buffer.from(leaf, 'hex')));
  }
});

/** RFC 6962, sections 2.1 to 2.1.2, word for word: slow, and easy to compare with the text. */
const sha256 = (...parts: Uint8Array[]): Uint8Array =>
  createHash('sha256').update(Buffer.concat(parts)).digest();
const largestPowerBelow = (n: number): number => 2 ** Math.ceil(Math.log2(n) - 1);
function mth(leaves: Uint8Array[]): Uint8Array {
  if (leaves.length === 0) return sha256();
  if (leaves.length === 1) return leaves[0] as Uint8Array;
  const k = largestPowerBelow(leaves.length);
  return sha256(Uint8Array.of(1), mth(leaves.slice(0, k)), mth(leaves.slice(k)));
}
function auditPath(m: number, leaves: Uint8Array[]): Uint8Array[] {
  if (leaves.length === 1) return [];
  const k = largestPowerBelow(leaves.length);
  return m < k
    ? [...auditPath(m, leaves.slice(0, k)), mth(leaves.slice(k))]
    : [...auditPath(m - k, leaves.slice(k)), mth(leaves.slice(0, k))];
}
function subProof(m: number, leaves: Uint8Array[], whole: boolean): Uint8Array[] {
  if (m === leaves.length) return whole ? [] : [mth(leaves)];
  const k = largestPowerBelow(leaves.length);
  return m <= k
    ? [...subProof(m, leaves.slice(0, k), whole), mth(leaves.slice(k))]
    : [...subProof(m - k, leaves.slice(k), false), mth(leaves.slice(0, k))];
}

const leafOf = (index: number): Uint8Array => hashLeaf(Buffer.from(`leaf ${index}`));
const leavesOf = (count: number): Uint8Array[] => Array.from({ length: count }, (_, index) => leafOf(index));

test('proofs of every size to 72, and from every leaf and size in it, are those of the definition', async () => {
  const all = leavesOf(72);
  for (let size = 1; size <= all.length; size += 1) {
    const leaves = all.slice(0, size);
    const source = MemoryHashes.of(leaves);
    const root = mth(leaves);
    assert.deepEqual(await rootOf(source, size), root);
    for (let index = 0; index < size; index += 1) {
      const proof = await inclusionProof(source, index, size);
      assert.deepEqual(proof, auditPath(index, leaves), `leaf ${index} of ${size}`);
      const claim = { index, size, root, leafHash: leaves[index] as Uint8Array };
      assert.deepEqual(checkInclusion(claim, proof), { ok: true });
    }
    for (let older = 1; older <= size; older += 1) {
      const proof = await consistencyProof(source, older, size);
      assert.deepEqual(proof, subProof(older, leaves, true), `${older} to ${size}`);
      const heads = [
        { size: older, root: mth(leaves.slice(0, older)) },
        { size, root },
      ] as const;
      assert.deepEqual(checkConsistency(...heads, proof), { ok: true });
    }
  }
});

/** Around the borders of the stored levels, with some leaves and sizes each. */
const borders = [255, 256, 257, 300, 511, 512, 513, 65_535, 65_536, 65_537, 65_536 + 256, 65_536 * 2 + 257];

describe('around the stored levels', async () => {
  const all = leavesOf(Math.max(...borders));
  const roots = new Map<number, Uint8Array>();
  const range = CompactRange.empty();
  const wanted = new Set(borders.flatMap((size) => placesIn(size).flatMap((place) => [place, place + 1])));
  for (const leaf of all) {
    range.append(leaf);
    if (wanted.has(range.size)) roots.set(range.size, range.root());
  }
  const source = MemoryHashes.of(all);
  for (const size of borders)
    test(`${size} leaves`, async () => {
      const root = roots.get(size) as Uint8Array;
      assert.deepEqual(await rootOf(source, size), root);
      assert.deepEqual((await compactRangeAt(source, size)).root(), root);
      for (const index of placesIn(size)) {
        source.largest = 0;
        const proof = await inclusionProof(source, index, size);
        assert.ok(source.largest <= 256 && source.largest > 0);
        const claim = { index, size, root, leafHash: all[index] as Uint8Array };
        assert.deepEqual(checkInclusion(claim, proof), { ok: true }, `leaf ${index}`);
        const older = index + 1;
        const heads = [
          { size: older, root: roots.get(older) as Uint8Array },
          { size, root },
        ] as const;
        const path = await consistencyProof(source, older, size);
        assert.deepEqual(checkConsistency(...heads, path), { ok: true }, `${older} to ${size}`);
      }
    });
});

function placesIn(size: number): number[] {
  const places = [
    0,
    1,
    254,
    255,
    256,
    257,
    511,
    512,
    65_534,
    65_535,
    65_536,
    Math.floor(size / 2),
    size - 2,
    size - 1,
  ];
  return [...new Set(places)].filter((place) => place >= 0 && place < size);
}

describe('a proof', async () => {
  const leaves = leavesOf(13);
  const [size, root] = [13, mth(leaves)];
  const source = MemoryHashes.of(leaves);
  const proof = await inclusionProof(source, 5, size);
  const claim = { index: 5, size, root, leafHash: leaves[5] as Uint8Array };
  const older = { size: 6, root: mth(leaves.slice(0, 6)) };
  const consistency = await consistencyProof(source, 6, size);
  const flipped = (hash: Uint8Array): Uint8Array =>
    Uint8Array.from(hash, (byte, at) => (at === 0 ? byte ^ 1 : byte));

  const wrong: [what: string, checked: { ok: boolean }][] = [
    ['of another leaf', checkInclusion({ ...claim, leafHash: leafOf(4) }, proof)],
    ['at another place', checkInclusion({ ...claim, index: 4 }, proof)],
    ['with another root', checkInclusion({ ...claim, root: flipped(root) }, proof)],
    ['at half a place', checkInclusion({ ...claim, index: 0.5 }, proof)],
    ['at a negative place', checkInclusion({ ...claim, index: -1 }, proof)],
    ['beyond the tree', checkInclusion({ ...claim, index: 13 }, proof)],
    ['of a tree without a size', checkInclusion({ ...claim, size: Number.NaN }, proof)],
    ['with a short hash', checkInclusion(claim, [...proof.slice(1), new Uint8Array(31)])],
    ['with no hash', checkInclusion(claim, [undefined as unknown as Uint8Array])],
    ['from nothing', checkConsistency({ size: 0, root: emptyRoot }, { size, root }, [])],
    ['to a smaller tree', checkConsistency({ size, root }, older, consistency)],
    ['without hashes', checkConsistency(older, { size, root }, [])],
    [
      'from another root',
      checkConsistency({ ...older, root: flipped(older.root) }, { size, root }, consistency),
    ],
    ['to another root', checkConsistency(older, { size, root: flipped(root) }, consistency)],
    ...proof.flatMap((_, at): [string, { ok: boolean }][] => [
      [
        `inclusion, hash ${at} changed`,
        checkInclusion(claim, proof.with(at, flipped(proof[at] as Uint8Array))),
      ],
      [`inclusion, hash ${at} missing`, checkInclusion(claim, proof.toSpliced(at, 1))],
      [`inclusion, hash ${at} twice`, checkInclusion(claim, proof.toSpliced(at, 0, proof[at] as Uint8Array))],
    ]),
    ...consistency.flatMap((hash, at): [string, { ok: boolean }][] => [
      [
        `consistency, hash ${at} changed`,
        checkConsistency(older, { size, root }, consistency.with(at, flipped(hash))),
      ],
      [
        `consistency, hash ${at} missing`,
        checkConsistency(older, { size, root }, consistency.toSpliced(at, 1)),
      ],
      [
        `consistency, hash ${at} twice`,
        checkConsistency(older, { size, root }, consistency.toSpliced(at, 0, hash)),
      ],
    ]),
  ];
  for (const [what, checked] of wrong) test(`${what} is refused`, () => assert.equal(checked.ok, false));

  test('is not made where hashes are missing', async () => {
    const damaged = { hashes: async () => [] };
    await assert.rejects(inclusionProof(damaged, 5, 13), MissingHashes);
  });
  test('is not made of what is not in the tree', async () => {
    await assert.rejects(inclusionProof(source, 13, 13), RangeError);
    await assert.rejects(consistencyProof(source, 14, 13), RangeError);
  });
});
