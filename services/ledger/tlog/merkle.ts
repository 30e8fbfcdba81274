/**
 * The Merkle tree of RFC 6962, section 2.1 (the same as RFC 9162, section 2.1), with SHA-256: how leaves and nodes are
 * hashed, and how proofs are checked. Pure and synchronous. The checks take whatever a stranger hands over and never
 * throw: a fault is a sentence.
 */
import { hash } from 'node:crypto';

/** Bytes of every hash of the tree. */
export const hashBytes = 32;

const leafPrefix = 0x00;
const nodePrefix = 0x01;
/** One node's input, used again and again: hashing is synchronous, so it is never in use twice. */
const nodeInput = Buffer.alloc(1 + 2 * hashBytes, nodePrefix);

/**
 * SHA-256. By way of a string, because Node makes an ArrayBuffer of its own for each digest that it returns as bytes: that
 * takes three times as long, and ten times the memory.
 */
export const sha256 = (input: Uint8Array): Uint8Array =>
  Buffer.from(hash('sha256', input, 'binary'), 'binary');

/** Root of the tree without leaves: the hash of nothing. */
export const emptyRoot: Uint8Array = sha256(new Uint8Array());

/** SHA-256(0x00 || leaf). */
export function hashLeaf(leaf: Uint8Array): Uint8Array {
  const input = Buffer.allocUnsafe(1 + leaf.length);
  input[0] = leafPrefix;
  input.set(leaf, 1);
  return sha256(input);
}

/** SHA-256(0x01 || left || right), of two hashes. */
export function hashNode(left: Uint8Array, right: Uint8Array): Uint8Array {
  nodeInput.set(left, 1);
  nodeInput.set(right, 1 + hashBytes);
  return sha256(nodeInput);
}

export const sameHash = (a: Uint8Array, b: Uint8Array): boolean =>
  a instanceof Uint8Array && b instanceof Uint8Array && Buffer.compare(a, b) === 0;

export type Checked = { readonly ok: true } | { readonly ok: false; readonly reason: string };

export const good: Checked = { ok: true };
export const bad = (reason: string): { ok: false; reason: string } => ({ ok: false, reason });

export interface InclusionClaim {
  readonly leafHash: Uint8Array;
  /** Place of the leaf, from 0. */
  readonly index: number;
  /** Leaves in the tree. */
  readonly size: number;
  readonly root: Uint8Array;
}

/** Whether `path` shows that the leaf is at its place in the tree with that root. RFC 9162, section 2.1.3.2. */
export function checkInclusion(claim: InclusionClaim, path: readonly Uint8Array[]): Checked {
  const { leafHash, index, size, root } = claim;
  if (!isCount(index) || !isCount(size)) return bad('index and tree size must be whole numbers');
  if (index >= size) return bad(`leaf ${index} is not in a tree of ${size}`);
  const malformed = malformedHash([leafHash, root, ...path]);
  if (malformed !== null) return bad(malformed);
  let [place, last, found] = [index, size - 1, leafHash];
  for (const sibling of path) {
    if (last === 0) return bad(`the inclusion proof of leaf ${index} has too many hashes`);
    if (isOdd(place) || place === last) {
      found = hashNode(sibling, found);
      while (!isOdd(place) && place !== 0) [place, last] = [half(place), half(last)];
    } else {
      found = hashNode(found, sibling);
    }
    [place, last] = [half(place), half(last)];
  }
  if (last !== 0) return bad(`the inclusion proof of leaf ${index} has too few hashes`);
  return sameHash(found, root)
    ? good
    : bad(`leaf ${index} is not what the tree of ${size} has at this place`);
}

export interface TreeHead {
  /** Leaves in the tree. */
  readonly size: number;
  readonly root: Uint8Array;
}

/**
 * Whether `path` shows that the tree `older` is how the tree `newer` began: nothing that was in it has been changed or
 * taken out. RFC 9162, section 2.1.4.2. Nothing can be shown from the empty tree, so that is a fault.
 */
export function checkConsistency(older: TreeHead, newer: TreeHead, path: readonly Uint8Array[]): Checked {
  if (!isCount(older.size) || !isCount(newer.size)) return bad('tree sizes must be whole numbers');
  if (older.size === 0) return bad('the empty tree is how every tree begins: there is nothing to prove');
  if (older.size > newer.size) return bad(`a tree of ${newer.size} cannot hold one of ${older.size}`);
  if (older.size === newer.size) {
    if (path.length > 0) return bad('trees of the same size need no hashes as a proof');
    return sameHash(older.root, newer.root) ? good : bad(`two trees of ${older.size} have different roots`);
  }
  const malformed = malformedHash([older.root, newer.root, ...path]);
  if (malformed !== null) return bad(malformed);
  return climb(older, newer, path);
}

/** From the last node that both trees have, up to both roots at once. */
function climb(older: TreeHead, newer: TreeHead, path: readonly Uint8Array[]): Checked {
  let [place, last] = [older.size - 1, newer.size - 1];
  while (isOdd(place)) [place, last] = [half(place), half(last)];
  // A complete older tree is itself that node, and is left out of the proof.
  const [start, ...rest] = place === 0 ? [older.root, ...path] : path;
  if (start === undefined) return bad('the consistency proof has no hashes');
  let [olderRoot, newerRoot] = [start, start];
  for (const sibling of rest) {
    if (last === 0) return bad('the consistency proof has too many hashes');
    if (isOdd(place) || place === last) {
      olderRoot = hashNode(sibling, olderRoot);
      newerRoot = hashNode(sibling, newerRoot);
      while (!isOdd(place) && place !== 0) [place, last] = [half(place), half(last)];
    } else {
      newerRoot = hashNode(newerRoot, sibling);
    }
    [place, last] = [half(place), half(last)];
  }
  if (last !== 0) return bad('the consistency proof has too few hashes');
  if (!sameHash(olderRoot, older.root))
    return bad(`the proof does not lead to the root of ${older.size} leaves`);
  if (!sameHash(newerRoot, newer.root))
    return bad(`the proof does not lead to the root of ${newer.size} leaves`);
  return good;
}

/** Numbers here go beyond 32 bits, where JavaScript's bit operators end. */
const isOdd = (value: number): boolean => value % 2 === 1;
const half = (value: number): number => Math.floor(value / 2);
const isCount = (value: number): boolean => Number.isSafeInteger(value) && value >= 0;

function malformedHash(hashes: readonly Uint8Array[]): string | null {
  if (hashes.every((one) => one instanceof Uint8Array && one.length === hashBytes)) return null;
  return `a hash has not ${hashBytes} bytes`;
}
