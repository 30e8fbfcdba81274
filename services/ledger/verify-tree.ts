/** The tree that the records make, beside what is stored of it and signed: subtrees, checkpoints, and one that was kept. */
import type { LedgerReader, StoredCheckpoint } from './store.ts';
import type { SignedCheckpoint } from './tlog/checkpoint.ts';
import { openCheckpoint, parseCheckpoint } from './tlog/checkpoint.ts';
import type { CompactRange, StoredLevel } from './tlog/compact-range.ts';
import { storedLevels } from './tlog/compact-range.ts';
import { hashBytes, sameHash } from './tlog/merkle.ts';
import type { VerifierKey } from './tlog/note.ts';
import type { Findings } from './verify-findings.ts';
import { CheckpointRows, SubtreeRows } from './verify-rows.ts';

export interface TreeParts {
  readonly reader: LedgerReader;
  readonly findings: Findings;
  /** Without the log's key, roots are compared and signatures are not. */
  readonly key: VerifierKey | null;
  readonly kept: SignedCheckpoint | null;
  /** The tree begins as a kept checkpoint says. */
  readonly beginsAsKept: boolean;
}

export class TreeChecks {
  readonly #parts: TreeParts;
  #range: CompactRange;
  /** After a leaf of which there are two versions: the tree with the other one, until something stored tells which is right. */
  #other: CompactRange | null = null;
  readonly #subtrees: ReadonlyMap<StoredLevel, SubtreeRows>;
  readonly #checkpoints: CheckpointRows;
  readonly #completed: Completed[] = [];
  #wrongRoots = 0;
  checkpoints = 0;
  /** So many records from the first on have a root that was signed. */
  covered: number;

  constructor(parts: TreeParts, range: CompactRange) {
    this.#parts = parts;
    this.#range = range;
    this.covered = parts.beginsAsKept ? range.size : 0;
    this.#subtrees = new Map(
      storedLevels.map((level) => [
        level,
        new SubtreeRows(parts, level, Math.floor(range.size / 2 ** level)),
      ]),
    );
    this.#checkpoints = new CheckpointRows(parts, range.size);
  }

  /** Leaves so far. */
  get size(): number {
    return this.#range.size;
  }

  root(): Uint8Array {
    return this.#range.root();
  }

  /** Before the first leaf: fetches what is compared later, and compares what is there of the tree as it begins. */
  async begin(): Promise<void> {
    await this.#checkpoints.fill();
    await this.#checkRoots();
  }

  /** Adds a leaf, by its stored hash and by that of its fields, and compares what is stored of the tree. */
  async add(storedHash: Uint8Array, leafHash: Uint8Array): Promise<void> {
    const doubtful = !sameHash(storedHash, leafHash);
    if (doubtful) this.#other ??= this.#range.clone();
    const usable = storedHash.length === hashBytes ? storedHash : leafHash;
    this.#range.append(usable, (level, number, hash) => void this.#completed.push({ level, number, hash }));
    this.#other?.append(
      leafHash,
      (level, number, hash) => void this.#completed.push({ level, number, hash }),
    );
    if (this.#completed.length > 0) await this.#checkSubtrees();
    await this.#checkRoots();
  }

  /** After the last leaf: what is signed and not there. `reached` is how far the log must go at least. */
  async end(reached: number): Promise<void> {
    const { kept, findings, reader } = this.#parts;
    const newest = await reader.newestCheckpoint();
    // A running service goes on: what it has signed by now, it has committed before.
    const { size } = await reader.head();
    const signed = Math.max(newest?.treeSize ?? 0, kept?.size ?? 0, reached);
    if (signed > size)
      findings.add(
        'truncated',
        size,
        `the ledger ends at ${size} records, and ${signed} were signed: the end is cut off`,
      );
    if (this.#wrongRoots > 1)
      findings.add(
        'checkpoint',
        size,
        `${this.#wrongRoots - 1} checkpoints after the first wrong one do not agree either`,
      );
  }

  async #checkSubtrees(): Promise<void> {
    for (const [key, versions] of Map.groupBy(
      this.#completed.splice(0),
      ({ level, number }) => `${level}/${number}`,
    )) {
      const { level, number } = versions[0] as Completed;
      const stored = await this.#subtrees.get(level)?.take(number);
      if (stored === undefined) continue;
      const right = stored === null ? -1 : versions.findIndex(({ hash }) => sameHash(hash, stored));
      this.#settle(right);
      if (right !== -1) continue;
      const [first, last] = [number * 2 ** level, (number + 1) * 2 ** level - 1];
      const fault = stored === null ? 'is missing' : 'is not what they give';
      this.#parts.findings.add(
        'subtree',
        first,
        `the stored hash ${key} of records ${first} to ${last} ${fault}`,
      );
    }
  }

  /** 0: the tree as it is agrees with what is stored; 1: the other one does. */
  #settle(right: number): void {
    if (right === 1 && this.#other !== null) this.#range = this.#other;
    if (right !== -1) this.#other = null;
  }

  async #checkRoots(): Promise<void> {
    const { kept, findings } = this.#parts;
    const { size } = this.#range;
    if (kept?.size === size) {
      if (this.#hasRoot(kept.root)) this.covered = size;
      else
        findings.add('kept', size, `the first ${size} records do not have the root of the kept checkpoint`);
    }
    while (this.#checkpoints.nextSize <= size) await this.#checkNextCheckpoint();
  }

  async #checkNextCheckpoint(): Promise<void> {
    const row = await this.#checkpoints.take();
    this.checkpoints += 1;
    const fault = rowFault(row, this.#parts.key);
    const { findings } = this.#parts;
    if (fault !== null)
      findings.add('checkpoint', row.treeSize, `the checkpoint of ${row.treeSize} records: ${fault}`);
    else if (row.treeSize === this.#range.size) {
      if (this.#hasRoot(row.rootHash)) this.covered = row.treeSize;
      else this.#wrongRoot(row);
    }
  }

  #hasRoot(root: Uint8Array): boolean {
    const roots = [this.#range.root(), ...(this.#other === null ? [] : [this.#other.root()])];
    const right = roots.findIndex((one) => sameHash(one, root));
    this.#settle(right);
    return right !== -1;
  }

  /** One changed leaf makes all later roots wrong: that is one fault. */
  #wrongRoot({ treeSize }: StoredCheckpoint): void {
    this.#wrongRoots += 1;
    if (this.#wrongRoots > 1) return;
    const fault = `the first ${treeSize} records do not have the root that was signed at the time`;
    this.#parts.findings.add('checkpoint', treeSize, fault);
  }
}

interface Completed {
  readonly level: StoredLevel;
  readonly number: number;
  readonly hash: Uint8Array;
}

/** Row and note must say the same, and the log must have signed it. */
function rowFault({ note, treeSize, rootHash }: StoredCheckpoint, key: VerifierKey | null): string | null {
  const opened = key === null ? parseCheckpoint(note) : openCheckpoint(note, key);
  if (!opened.ok) return opened.reason;
  const { size, root } = opened.value;
  return size === treeSize && sameHash(root, rootHash) ? null : `what was signed is one of ${size} records`;
}
