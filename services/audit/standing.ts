/** Where things stand in the ledger: which checkpoint covers a record, and where the records of a time begin. */
import type { LedgerReader, StoredCheckpoint } from '../ledger/store.ts';

/** The smallest checkpoint that covers the record, and the newest; null while there is none. */
export async function standingReply(store: LedgerReader, sequence: number) {
  const [covering] = await store.checkpoints(sequence + 1, 1);
  const newest = await store.newestCheckpoint();
  const { size } = await store.head();
  return {
    size,
    covering: covering === undefined ? null : checkpointView(covering),
    newest: newest === null ? null : checkpointView(newest),
  };
}

export function checkpointView({ treeSize, rootHash, at, note }: StoredCheckpoint) {
  const hex = Buffer.from(rootHash).toString('hex');
  return { treeSize, rootHash: hex, at, note: Buffer.from(note).toString('utf8') };
}

/**
 * The tenant sequence after which the records of `sinceMs` (milliseconds since 1970) and later begin. Times never go back
 * and sequences have no gap, so that some twenty looks find it among millions.
 */
export async function positionOf(store: LedgerReader, tenant: string, sinceMs: number): Promise<number> {
  const isLate = async (sequence: number): Promise<boolean> => {
    const [record] = await store.recordsOfTenant(tenant, sequence - 1, { records: 1, bytes: 1 });
    return record === undefined || record.recordedAt >= sinceMs * 1000;
  };
  let high = 1;
  while (!(await isLate(high))) high *= 2;
  let low = -1;
  // Everything up to `low` is earlier; `high` is not.
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (await isLate(middle)) high = middle;
    else low = middle;
  }
  return low;
}
