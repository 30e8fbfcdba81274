/**
 * The right edge of a growing tree: for each 1 in the binary form of its size, the hash of one complete subtree, the
 * largest first. That is all that is needed to add leaves and to know the root (at most 53 hashes).
 */
import { emptyRoot, hashBytes, hashNode } from './merkle.ts';

/** Complete subtrees of 2^8, 2^16 and 2^24 leaves are stored, so that proofs read few hashes. Level 0 are the leaves. */
export const storedLevels = [8, 16, 24] as const;
export type StoredLevel = (typeof storedLevels)[number];

/** Told of a complete subtree of 2^level leaves, the `number`th of its level from the left, from 0. */
export type OnSubtree = (level: StoredLevel, number: number, hash: Uint8Array) => void;

export class CompactRange {
  #size: number;
  readonly #hashes: Uint8Array[];

  private constructor(size: number, hashes: Uint8Array[]) {
    this.#size = size;
    this.#hashes = hashes;
  }

  static empty(): CompactRange {
    return new CompactRange(0, []);
  }

  /** The range of a tree of `size` leaves, from what `hashes` gave. Throws on a wrong number of hashes: a bug. */
  static of(size: number, hashes: readonly Uint8Array[]): CompactRange {
    if (!Number.isSafeInteger(size) || size < 0) throw new Error(`a tree cannot have ${size} leaves`);
    const wanted = subtreesOf(size).length;
    if (hashes.length !== wanted || hashes.some((hash) => hash.length !== hashBytes))
      throw new Error(`the right edge of ${size} leaves is ${wanted} hashes, not ${hashes.length}`);
    return new CompactRange(size, [...hashes]);
  }

  /** Leaves in the tree. */
  get size(): number {
    return this.#size;
  }

  /** Of the complete subtrees, from the largest, on the left, to the smallest. */
  get hashes(): readonly Uint8Array[] {
    return this.#hashes;
  }

  clone(): CompactRange {
    return new CompactRange(this.#size, [...this.#hashes]);
  }

  /** Adds a leaf by its hash. `onSubtree` is told of each subtree of a stored level that it completes. */
  append(leafHash: Uint8Array, onSubtree?: OnSubtree): void {
    let hash = leafHash;
    let rest = this.#size;
    for (let level = 1; rest % 2 === 1; level += 1) {
      hash = hashNode(this.#hashes.pop() as Uint8Array, hash);
      rest = (rest - 1) / 2;
      if (onSubtree !== undefined && isStoredLevel(level)) onSubtree(level, rest, hash);
    }
    this.#hashes.push(hash);
    this.#size += 1;
  }

  /** Root of the tree as it is now. */
  root(): Uint8Array {
    const [last, ...larger] = this.#hashes.toReversed();
    if (last === undefined) return emptyRoot;
    return larger.reduce((right, left) => hashNode(left, right), last);
  }
}

const isStoredLevel = (level: number): level is StoredLevel => level === 8 || level === 16 || level === 24;

/** The complete subtrees that a tree of `size` leaves is made of, from left to right. */
export function subtreesOf(size: number): { readonly level: number; readonly start: number }[] {
  const subtrees: { level: number; start: number }[] = [];
  let end = size;
  for (let level = 0; 2 ** level <= size; level += 1) {
    if (Math.floor(size / 2 ** level) % 2 === 0) continue;
    end -= 2 ** level;
    subtrees.push({ level, start: end });
  }
  return subtrees.reverse();
}
