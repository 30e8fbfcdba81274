/**
 * Keeps the newest good trust store in force. It reads the file and the pinned root again when they change, accepts only
 * what the line of roots has signed and what may follow the highest store that any machine has seen, and says loudly
 * when a file cannot be used.
 *
 *   damaged, forged or older file   the store in force stays in force
 *   missing file, no pinned root    nothing is in force: everything is refused
 *   another machine has a newer one nothing is in force, until the newer file is here as well
 */
import { readFileSync, statSync } from 'node:fs';
import type { Clock } from '../platform/clock.ts';
import { OperationalError } from '../platform/errors.ts';
import type { Logger } from '../platform/log.ts';
import type { Rejection, SignedTrustStore, TrustStore, TrustStoreMark } from '../trust/index.ts';
import { checkFollows, markOf, reject, reloadTrustStore } from '../trust/index.ts';
import type { TrustFiles } from './config.ts';
import type { SeenMark, TrustStoreMarks } from './marks.ts';
import { isKeyText, readPinnedRoot } from './root-key.ts';

export interface TrustState {
  /** Null refuses everything. */
  readonly store: TrustStore | null;
  /** What is wrong with the file or the root: the reason for which everything is refused, where `store` is null. */
  readonly problem: Rejection | null;
}

export interface KeeperOptions {
  readonly files: TrustFiles;
  readonly marks: TrustStoreMarks;
  readonly clock: Clock;
  readonly log: Logger;
}

const lookMs = 1_000;
/** A problem that lasts is said again after this time. */
const repeatMs = 60_000;

export class TrustStoreKeeper {
  readonly #options: KeeperOptions;
  readonly #onChange = new Set<(store: TrustStore | null) => void>();
  readonly #timer: NodeJS.Timeout;
  #inForce: SignedTrustStore | null = null;
  #problem: Rejection | null = null;
  /** What was read last; empty where it must be read again. */
  #stamp = '';
  #revision = -1;
  #looking: Promise<void> = Promise.resolve();
  /** Of the last look: the bus is away, say. What is in force stays, and the next look tries again. */
  #failure: OperationalError | null = null;
  #busy = 0;
  #said = { detail: '', atMs: 0 };

  private constructor(options: KeeperOptions) {
    this.#options = options;
    // Keeps no process alive whose start has failed.
    this.#timer = setInterval(() => void this.#look(true), lookMs).unref();
  }

  /** Resolves when the file was read, whatever came of it. Throws when the mark cannot be: then nothing can be said. */
  static async open(options: KeeperOptions): Promise<TrustStoreKeeper> {
    const keeper = new TrustStoreKeeper(options);
    await keeper.#look(true);
    if (keeper.#failure === null) return keeper;
    await keeper.stop();
    throw keeper.#failure;
  }

  /**
   * The state by the files as they are now. A look at their times costs a few µs; they are read when they changed.
   * Throws OperationalError when they changed and the mark cannot be read: whoever asks must ask again later.
   */
  async current(): Promise<TrustState> {
    if (this.#busy === 0 && this.#fileStamp() === this.#stamp) return this.latest;
    await this.#look(false);
    if (this.#failure !== null) throw this.#failure;
    return this.latest;
  }

  /** The state at the last look, at most a second ago. */
  get latest(): TrustState {
    return { store: this.#inForce?.store ?? null, problem: this.#problem };
  }

  /** Calls `listener` whenever another store, or none, has come into force. */
  onChange(listener: (store: TrustStore | null) => void): void {
    this.#onChange.add(listener);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#looking;
  }

  /** One look after the other. */
  #look(atMark: boolean): Promise<void> {
    this.#busy += 1;
    this.#looking = this.#looking
      .then(() => this.#lookOnce(atMark))
      .then(
        () => {
          this.#failure = null;
        },
        (error: unknown) => this.#onFailure(error),
      )
      .finally(() => {
        this.#busy -= 1;
      });
    return this.#looking;
  }

  #onFailure(error: unknown): void {
    if (!(error instanceof OperationalError)) throw error;
    this.#stamp = '';
    this.#failure = error;
    this.#options.log.warn({ error: error.message }, 'cannot compare the trust store with its mark');
  }

  async #lookOnce(atMark: boolean): Promise<void> {
    const stamp = this.#fileStamp();
    if (!atMark && stamp === this.#stamp) return;
    const seen = await this.#options.marks.read();
    if (!seen.ok) {
      this.#stamp = '';
      return this.#settle(null, seen);
    }
    if (stamp === this.#stamp && seen.value.revision === this.#revision) return this.#repeat();
    await this.#reload(seen.value);
    this.#stamp = stamp;
  }

  async #reload(seen: SeenMark): Promise<void> {
    const { files, marks } = this.#options;
    this.#revision = seen.revision;
    const root = readPinnedRoot(files.root);
    if (!root.ok) return this.#settle(null, root);
    const current = this.#inForce;
    const stands = (signed: SignedTrustStore) =>
      signed.rootLine.includes(root.value.keyId) && checkFollows(signed, seen.mark) === null;
    const standing = current !== null && stands(current) ? current : null;
    const trust = { pinnedRoot: root.value, mark: seen.mark };
    const { inForce, problem } = reloadTrustStore(standing, readIfThere(files.trustStore), trust);
    const isConfirmed =
      standing !== null && isMarked(inForce, markOf(standing)) && isMarked(inForce, seen.mark);
    if (inForce === null || isConfirmed) return this.#settle(inForce, problem);
    const advanced = await marks.advance(inForce);
    if (!('revision' in advanced)) return this.#settle(standing, advanced);
    this.#revision = advanced.revision;
    this.#settle(inForce, problem);
  }

  #settle(inForce: SignedTrustStore | null, problem: Rejection | null): void {
    const before = this.#inForce;
    this.#inForce = inForce;
    this.#problem = problem === null ? null : asTrustFault(problem);
    if (this.#problem === null) this.#said = { detail: '', atMs: 0 };
    else this.#repeat();
    if (inForce === null ? before === null : before !== null && isMarked(inForce, markOf(before))) return;
    if (inForce !== null) {
      const about = { ...markOf(inForce), keys: inForce.store.keys.length };
      this.#options.log.info({ file: this.#options.files.trustStore, ...about }, 'trust store in force');
    }
    for (const listener of this.#onChange) listener(inForce?.store ?? null);
  }

  /** Says what is wrong, at once and then every minute. */
  #repeat(): void {
    if (this.#problem === null) return;
    const nowMs = this.#options.clock.monotonicMs();
    const { reason, detail } = this.#problem;
    if (this.#said.detail === detail && nowMs - this.#said.atMs < repeatMs) return;
    this.#said = { detail, atMs: nowMs };
    const then =
      this.#inForce === null
        ? 'nothing is in force: everything is refused'
        : `version ${this.#inForce.store.version} stays in force`;
    this.#options.log.error(
      { file: this.#options.files.trustStore, reason, detail },
      `the trust store cannot be used; ${then}`,
    );
  }

  #fileStamp(): string {
    const { trustStore, root } = this.#options.files;
    return `${stampOf(trustStore)} ${isKeyText(root) ? '' : stampOf(root)}`;
  }
}

/** What the state of a file can be told by without reading it. */
function stampOf(file: string): string {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = statSync(file, { bigint: true });
    return `${dev}:${ino}:${size}:${mtimeNs}:${ctimeNs}`;
  } catch {
    return 'missing';
  }
}

/** Whether this is the very store that left the mark. */
function isMarked(signed: SignedTrustStore | null, mark: TrustStoreMark | null): boolean {
  if (signed === null || mark === null) return false;
  const { version, digest, rootKeyId } = markOf(signed);
  return version === mark.version && digest === mark.digest && rootKeyId === mark.rootKeyId;
}

function readIfThere(file: string): Uint8Array | null {
  try {
    return readFileSync(file);
  } catch {
    return null;
  }
}

/** Jobs are refused with this reason: one that speaks of a plugin's envelope would send people to the wrong place. */
function asTrustFault(problem: Rejection): Rejection {
  return /TRUST_STORE/.test(problem.reason) ? problem : reject('NO_TRUST_STORE', problem.detail);
}
