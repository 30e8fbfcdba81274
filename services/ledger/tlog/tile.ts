/**
 * The log as static resources (c2sp.org/tlog-tiles): runs of 256 hashes, and bundles of 256 entries, under paths that any
 * monitor of transparency logs knows. What is stored for proofs is what tiles are made of: the hashes of level L are those
 * of subtrees of 2^(8·L) leaves. Paths are parsed and made here; who may read them is the server's matter. (Entries name
 * tenants and jobs; hashes do not.)
 */
import type { AuditLeaf } from '../../platform/codec.ts';
import { leafBytes } from './leaf.ts';
import type { HashLevel, HashSource } from './proofs.ts';

/** Hashes, or entries, of a whole tile. */
export const tileWidth = 256;
/** Trees of more than 2^32 leaves would have higher ones. */
const storedLevels: readonly HashLevel[] = [0, 8, 16, 24];
/** An entry's length is a uint16. */
const longestEntry = 0xffff;

export interface Tile {
  /** 0 for leaves; null for a bundle of entries. */
  readonly level: number | null;
  /** Place within the level, from 0. */
  readonly number: number;
  /** 256, or less for a partial one. */
  readonly width: number;
}

/** `tile/<L>/<N>[.p/<W>]` or `tile/entries/<N>[.p/<W>]`, without the slash in front of it. */
export function tilePath({ level, number, width }: Tile): string {
  const partial = width === tileWidth ? '' : `.p/${width}`;
  return `tile/${level ?? 'entries'}/${groups(number)}${partial}`;
}

const pathPattern = /^tile\/(entries|0|[1-9]\d?)\/((?:x\d{3}\/)*\d{3})(?:\.p\/([1-9]\d{0,2}))?$/;

/** The reverse; null for what is no such path, or is not written in the one way. */
export function parseTilePath(path: string): Tile | null {
  const [, level, digits = '', partial] = pathPattern.exec(path) ?? [];
  if (level === undefined) return null;
  const number = Number(digits.replace(/[x/]/g, ''));
  const width = partial === undefined ? tileWidth : Number(partial);
  if (!Number.isSafeInteger(number) || (partial !== undefined && width >= tileWidth)) return null;
  const tile = { level: level === 'entries' ? null : Number(level), number, width };
  return tilePath(tile) === path ? tile : null;
}

/** Three digits each, all but the last with an x in front. */
function groups(number: number): string {
  const digits = String(number);
  const padded = digits.padStart(Math.ceil(digits.length / 3) * 3, '0');
  const parts = padded.match(/\d{3}/g) ?? [];
  return parts.map((part, at) => (at === parts.length - 1 ? part : `x${part}`)).join('/');
}

/** Whether a tree of `size` leaves has (at least) this much of the tile. */
export function isInTree({ level, number, width }: Tile, size: number): boolean {
  const there = Math.floor(size / tileWidth ** (level ?? 0));
  return (level ?? 0) < storedLevels.length && number * tileWidth + width <= there;
}

/** The hashes of a tile, one behind the other; null where the tree of `size` leaves has not all of them. */
export async function tileBytes(source: HashSource, tile: Tile, size: number): Promise<Uint8Array | null> {
  const stored = tile.level === null ? undefined : storedLevels[tile.level];
  if (stored === undefined || !isInTree(tile, size)) return null;
  const hashes = await source.hashes(stored, tile.number * tileWidth, tile.width);
  return hashes.length === tile.width ? Buffer.concat(hashes) : null;
}

/** A bundle of entries, each after its length in two bytes, big-endian. An entry is what the tree hashes. */
export function entryBundle(leaves: readonly AuditLeaf[]): Uint8Array {
  const parts = leaves.flatMap((leaf) => {
    const entry = leafBytes(leaf);
    if (entry.length > longestEntry)
      throw new RangeError(`leaf ${leaf.sequence} has ${entry.length} bytes, a bundle holds ${longestEntry}`);
    return [Uint8Array.of(entry.length >> 8, entry.length & 0xff), entry];
  });
  return Buffer.concat(parts);
}
