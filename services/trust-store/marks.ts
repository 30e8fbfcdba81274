/**
 * The highest trust store that any machine has put in force, in KV, where all machines see it. It only moves forward:
 * every change is a compare-and-set on a mark that the new store may follow. So an old file that comes back, on
 * whichever machine and after however many restarts, is recognised.
 */
import { OperationalError } from '../platform/errors.ts';
import type { KvBucket } from '../platform/nats/kv.ts';
import type { Checked, Rejection, SignedTrustStore, TrustStoreMark } from '../trust/index.ts';
import { checkFollows, encodeTrustStoreMark, markOf, parseTrustStoreMark } from '../trust/index.ts';

const key = 'highest';
const tries = 20;

export interface SeenMark {
  readonly mark: TrustStoreMark | null;
  /** Of the KV entry; 0 where there is none. */
  readonly revision: number;
}

export class TrustStoreMarks {
  readonly #bucket: KvBucket;

  constructor(bucket: KvBucket) {
    this.#bucket = bucket;
  }

  /** The mark as it stands. One that cannot be read stops everything: nobody knows what it forbade. */
  async read(): Promise<Checked<SeenMark>> {
    const entry = await this.#bucket.get(key);
    if (entry === null) return { ok: true, value: { mark: null, revision: 0 } };
    const mark = parseTrustStoreMark(entry.value);
    return mark.ok ? { ok: true, value: { mark: mark.value, revision: entry.revision } } : mark;
  }

  /**
   * Records that this store comes into force. Returns the mark's new revision, or why the store may not: another
   * machine has seen a newer one. Written even where it changes nothing, since a read alone may be stale.
   */
  async advance(signed: SignedTrustStore): Promise<{ readonly revision: number } | Rejection> {
    for (let attempt = 0; attempt < tries; attempt += 1) {
      const seen = await this.read();
      if (!seen.ok) return seen;
      const refusal = checkFollows(signed, seen.value.mark);
      if (refusal !== null) return refusal;
      const revision = await this.#write(markOf(signed), seen.value.revision);
      if (revision !== null) return { revision };
    }
    throw new OperationalError('CONTENTION', 'the mark of the trust store changes too fast');
  }

  #write(mark: TrustStoreMark, seenRevision: number): Promise<number | null> {
    const bytes = encodeTrustStoreMark(mark);
    return seenRevision === 0
      ? this.#bucket.create(key, bytes)
      : this.#bucket.update(key, bytes, seenRevision);
  }
}
