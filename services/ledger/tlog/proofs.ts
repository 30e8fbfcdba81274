/**
 * Proofs made from stored hashes. A store keeps the leaves' hashes and those of complete subtrees of 2^8, 2^16 and 2^24
 * leaves; every other node is made of at most 256 of them. A proof touches at most two runs of 256 on each level: where
 * it starts, and the right edge of the tree. Throws MissingHashes where stored hashes are not there.
 */
import { UsageError } from '../../platform/errors.ts';
import { CompactRange, subtreesOf } from './compact-range.ts';
import { emptyRoot, hashBytes, hashNode } from './merkle.ts';

export type HashLevel = 0 | 8 | 16 | 24;

/** Where hashes are stored. */
export interface HashSource {
  /**
   * Hashes of the complete subtrees number `from` to `from + count - 1` of 2^level leaves each, all of which the caller
   * knows to be there. `count` is 1 to 256.
   */
  hashes(level: HashLevel, from: number, count: number): Promise<readonly Uint8Array[]>;
}

/** RFC 9162, section 2.1.3.1: shows that leaf `index` is in the tree of the first `size` leaves. */
export function inclusionProof(source: HashSource, index: number, size: number): Promise<Uint8Array[]> {
  return inclusionProofs(source, size)(index);
}

/** The same for several leaves of one tree: what was read for one is not read again for the next. */
export function inclusionProofs(source: HashSource, size: number): (index: number) => Promise<Uint8Array[]> {
  const nodes = new Nodes(source, size);
  return async (index) => {
    if (!(index >= 0 && index < size)) throw new RangeError(`leaf ${index} is not in a tree of ${size}`);
    const path: Uint8Array[] = [];
    for (let [start, end] = [0, size]; end - start > 1; ) {
      const middle = start + split(end - start);
      if (index < middle) {
        path.push(await nodes.ofRange(middle, end));
        end = middle;
      } else {
        path.push(await nodes.ofRange(start, middle));
        start = middle;
      }
    }
    return path.reverse();
  };
}

/** RFC 9162, section 2.1.4.1: shows that the tree of the first `older` leaves is how that of `newer` began. */
export async function consistencyProof(
  source: HashSource,
  older: number,
  newer: number,
): Promise<Uint8Array[]> {
  if (!(older >= 0 && older <= newer)) throw new RangeError(`a tree of ${newer} has none of ${older}`);
  if (older === 0) return [];
  const nodes = new Nodes(source, newer);
  const path: Uint8Array[] = [];
  let [start, end] = [0, newer];
  while (older < end) {
    const middle = start + split(end - start);
    if (older <= middle) {
      path.push(await nodes.ofRange(middle, end));
      end = middle;
    } else {
      path.push(await nodes.ofRange(start, middle));
      start = middle;
    }
  }
  // The whole older tree is what the verifier has already.
  if (start > 0) path.push(await nodes.ofRange(start, end));
  return path.reverse();
}

/** The right edge of the first `size` leaves, to go on from there. */
export async function compactRangeAt(source: HashSource, size: number): Promise<CompactRange> {
  const nodes = new Nodes(source, size);
  const hashes: Uint8Array[] = [];
  for (const { level, start } of subtreesOf(size))
    hashes.push(await nodes.ofRange(start, start + 2 ** level));
  return CompactRange.of(size, hashes);
}

/** Root of the tree of the first `size` leaves. */
export async function rootOf(source: HashSource, size: number): Promise<Uint8Array> {
  return size === 0 ? emptyRoot : new Nodes(source, size).ofRange(0, size);
}

/** Stored hashes lie in runs of 256, each read once and whole, and kept: 8 KiB each. */
const runLength = 256;

class Nodes {
  readonly #source: HashSource;
  readonly #size: number;
  readonly #runs = new Map<string, Promise<readonly Uint8Array[]>>();

  constructor(source: HashSource, size: number) {
    this.#source = source;
    this.#size = size;
  }

  /** Root of the leaves from `start` to before `end`, as they stand in the tree (so `start` is a multiple of enough). */
  async ofRange(start: number, end: number): Promise<Uint8Array> {
    const count = end - start;
    const middle = split(count);
    if (middle * 2 === count || count === 1) return this.#complete(start, count);
    return hashNode(await this.#complete(start, middle), await this.ofRange(start + middle, end));
  }

  /** Of a complete subtree, from the nearest stored level below. */
  async #complete(start: number, count: number): Promise<Uint8Array> {
    const level = count < 2 ** 8 ? 0 : count < 2 ** 16 ? 8 : count < 2 ** 24 ? 16 : 24;
    const width = 2 ** level;
    let hashes = await this.#stored(level, start / width, count / width);
    while (hashes.length > 1) hashes = pairs(hashes);
    return hashes[0] as Uint8Array;
  }

  async #stored(level: HashLevel, from: number, count: number): Promise<readonly Uint8Array[]> {
    const parts: Uint8Array[] = [];
    for (let at = from; at < from + count; ) {
      const run = await this.#run(level, Math.floor(at / runLength));
      const within = run.slice(at % runLength, (at % runLength) + from + count - at);
      parts.push(...within);
      at += within.length;
    }
    return parts;
  }

  #run(level: HashLevel, number: number): Promise<readonly Uint8Array[]> {
    const key = `${level}/${number}`;
    const known = this.#runs.get(key);
    if (known !== undefined) return known;
    const from = number * runLength;
    const count = Math.min(runLength, Math.floor(this.#size / 2 ** level) - from);
    const run = this.#source.hashes(level, from, count).then((hashes) => whole(hashes, level, from, count));
    this.#runs.set(key, run);
    return run;
  }
}

/** A store that lacks hashes is damaged; nothing made of the rest would be a proof. */
function whole(
  hashes: readonly Uint8Array[],
  level: HashLevel,
  from: number,
  count: number,
): readonly Uint8Array[] {
  if (hashes.length !== count || hashes.some((one) => one.length !== hashBytes))
    throw new MissingHashes(level, from, count);
  return hashes;
}

/** Hashes that must be stored are not: the ledger is damaged, or smaller than was asked. */
export class MissingHashes extends UsageError {
  constructor(level: HashLevel, from: number, count: number) {
    super(
      `the ledger has not all of the ${count} hashes of level ${level} from number ${from} on: run \`sandbus audit verify\``,
      1,
    );
  }
}

function pairs(hashes: readonly Uint8Array[]): Uint8Array[] {
  const parents: Uint8Array[] = [];
  for (let at = 0; at < hashes.length; at += 2)
    parents.push(hashNode(hashes[at] as Uint8Array, hashes[at + 1] as Uint8Array));
  return parents;
}

/** The largest power of two below `count`; 1 for 1. */
function split(count: number): number {
  let power = 1;
  while (power * 2 < count) power *= 2;
  return power;
}
