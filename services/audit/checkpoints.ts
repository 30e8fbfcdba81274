/**
 * Signs the tree, at most every second while there are new leaves. A checkpoint is stored before it is published, so
 * that a crash in between says nothing twice and nothing contradictory: the tree that was signed is committed already.
 */
import type { Ledger } from '../ledger/ledger.ts';
import { signCheckpoint } from '../ledger/tlog/checkpoint.ts';
import type { Signer } from '../ledger/tlog/note.ts';
import type { Clock } from '../platform/clock.ts';
import { toMicros } from '../platform/clock.ts';
import type { Logger } from '../platform/log.ts';
import { Worker } from './worker.ts';

const periodMs = 1000;

export interface CheckpointParts {
  readonly ledger: Ledger;
  readonly signer: Signer;
  readonly clock: Clock;
  readonly log: Logger;
  /** Told when there is a new one. */
  readonly onSigned: () => void;
}

export class Checkpoints {
  readonly worker: Worker;
  readonly #parts: CheckpointParts;
  /** Size of the newest one; null while it is not known. */
  #size: number | null = null;
  #dueAtMs = 0;

  constructor(parts: CheckpointParts) {
    this.#parts = parts;
    this.worker = new Worker('checkpoints', () => this.#turn(), parts.log);
  }

  async #turn(): Promise<number | null> {
    if (!(await this.#hasUnsigned())) return null;
    const waitMs = this.#dueAtMs - performance.now();
    if (waitMs > 0) return waitMs;
    this.#dueAtMs = performance.now() + periodMs;
    await this.#sign();
    return null;
  }

  /** Signs what is not signed yet, for whoever stops. */
  async finish(): Promise<void> {
    if (await this.#hasUnsigned()) await this.#sign();
  }

  async #hasUnsigned(): Promise<boolean> {
    const { ledger } = this.#parts;
    this.#size ??= (await ledger.store.newestCheckpoint())?.treeSize ?? 0;
    return ledger.size > this.#size;
  }

  async #sign(): Promise<void> {
    const { ledger, signer, clock, onSigned } = this.#parts;
    const [treeSize, rootHash] = [ledger.size, ledger.root];
    const note = signCheckpoint({ size: treeSize, root: rootHash }, signer);
    await ledger.store.addCheckpoint({ treeSize, rootHash, at: toMicros(clock.nowMs()), note });
    this.#size = treeSize;
    onSigned();
  }
}
