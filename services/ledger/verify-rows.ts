/** Stored subtrees and checkpoints in order, a page at a time. Those that cannot be read are one finding. */
import { messageOf, OperationalError } from '../platform/errors.ts';
import type { LedgerReader, StoredCheckpoint, StoredLevel, Subtree } from './store.ts';
import type { Findings } from './verify-findings.ts';

const pageRows = 1024;

interface Parts {
  readonly reader: LedgerReader;
  readonly findings: Findings;
}

/** Subtrees of one level. */
export class SubtreeRows {
  readonly #parts: Parts;
  readonly #level: StoredLevel;
  #rows: Subtree[] | null = [];
  #next: number;

  constructor(parts: Parts, level: StoredLevel, first: number) {
    this.#parts = parts;
    this.#level = level;
    this.#next = first;
  }

  /** The hash of that number; null where there is none, undefined where none can be read. Numbers come in order. */
  async take(number: number): Promise<Uint8Array | null | undefined> {
    this.#next = Math.max(this.#next, number);
    if (this.#rows?.length === 0) this.#rows = await this.#read();
    const rows = this.#rows;
    if (rows === null) return undefined;
    while ((rows.at(-1)?.number ?? number) < number) rows.pop();
    return rows.at(-1)?.number === number ? (rows.pop()?.hash ?? null) : null;
  }

  async #read(): Promise<Subtree[] | null> {
    const { reader, findings } = this.#parts;
    const read = reader.subtrees(this.#level, this.#next, pageRows);
    const first = this.#next * 2 ** this.#level;
    const rows = await read.catch((error: unknown) => unreadable(findings, 'subtree', first, error));
    return rows?.toReversed() ?? null;
  }
}

/** Checkpoints, by size. */
export class CheckpointRows {
  readonly #parts: Parts;
  #rows: StoredCheckpoint[] = [];
  #from: number;

  constructor(parts: Parts, from: number) {
    this.#parts = parts;
    this.#from = from;
  }

  /** Size of the next one; infinite when there is none. */
  get nextSize(): number {
    return this.#rows.at(-1)?.treeSize ?? Number.POSITIVE_INFINITY;
  }

  /** Reads the next page. Before the first one there is none to take. */
  async fill(): Promise<void> {
    const { reader, findings } = this.#parts;
    const read = reader.checkpoints(this.#from, pageRows);
    const rows = await read.catch((error: unknown) => unreadable(findings, 'checkpoint', this.#from, error));
    this.#rows = rows?.toReversed() ?? [];
  }

  async take(): Promise<StoredCheckpoint> {
    const row = this.#rows.pop() as StoredCheckpoint;
    this.#from = row.treeSize + 1;
    if (this.#rows.length === 0) await this.fill();
    return row;
  }
}

function unreadable(findings: Findings, kind: 'subtree' | 'checkpoint', from: number, error: unknown): null {
  if (error instanceof OperationalError) throw error;
  findings.add(kind, from, `stored ${kind}s from ${from} on cannot be read: ${messageOf(error)}`);
  return null;
}
