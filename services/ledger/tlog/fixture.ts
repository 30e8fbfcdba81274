/** A tree in memory, for tests. */
import { CompactRange } from './compact-range.ts';
import type { HashLevel, HashSource } from './proofs.ts';

export class MemoryHashes implements HashSource {
  readonly levels = new Map<HashLevel, Uint8Array[]>([
    [0, []],
    [8, []],
    [16, []],
    [24, []],
  ]);
  readonly range = CompactRange.empty();
  /** The most hashes that were read at once. */
  largest = 0;

  static of(leafHashes: readonly Uint8Array[]): MemoryHashes {
    const source = new MemoryHashes();
    for (const leafHash of leafHashes) source.add(leafHash);
    return source;
  }

  add(leafHash: Uint8Array): void {
    this.levels.get(0)?.push(leafHash);
    this.range.append(leafHash, (level, _number, hash) => void this.levels.get(level)?.push(hash));
  }

  async hashes(level: HashLevel, from: number, count: number): Promise<Uint8Array[]> {
    this.largest = Math.max(this.largest, count);
    return (this.levels.get(level) ?? []).slice(from, from + count);
  }
}
