/**
 * Before anything is written: an older database (restored from a copy, or failed over) gets back from AUDIT what it has
 * lost, exactly, or the start is refused. Then the tree must be the one of the newest checkpoint on the bus.
 */
import type { Ledger } from '../ledger/ledger.ts';
import { RefillFault } from '../ledger/plan.ts';
import { sameHash } from '../ledger/tlog/merkle.ts';
import { rootOf } from '../ledger/tlog/proofs.ts';
import type { AuditCheckpoint, AuditRecord } from '../platform/codec.ts';
import { PoisonError, UsageError } from '../platform/errors.ts';
import type { Logger } from '../platform/log.ts';
import type { Feed } from './feed.ts';
import { ledgerSequenceOf } from './feed.ts';
import { aheadOfLedger } from './outbox.ts';

/** Records that are committed at one time. */
const batchRecords = 256;
const batchBytes = 8 * 1024 * 1024;

/** Throws UsageError when the ledger cannot be brought up to what AUDIT has. */
export async function catchUp(ledger: Ledger, feed: Feed, log: Logger): Promise<void> {
  const newest = await feed.newestRecord();
  if (newest !== null && newest.sequence >= ledger.size) await refill(ledger, feed, newest.sequence, log);
  const checkpoint = await feed.newestCheckpoint();
  if (checkpoint !== null) await compare(ledger, checkpoint);
}

async function refill(ledger: Ledger, feed: Feed, published: number, log: Logger): Promise<void> {
  const from = ledger.size;
  log.warn({ from, to: published }, 'the ledger is older than AUDIT: it is refilled from there');
  try {
    for await (const batch of lostRecords(feed, from)) await ledger.refill(batch);
  } catch (error) {
    if (error instanceof RefillFault || error instanceof PoisonError)
      throw aheadOfLedger(published, ledger.size, `It cannot be refilled: ${error.message}. `);
    throw error;
  }
  if (published >= ledger.size)
    throw aheadOfLedger(published, ledger.size, `It cannot be refilled: AUDIT ends before that. `);
  log.warn(
    { records: ledger.size - from },
    'the ledger has been refilled; what was erased since that copy was made is here again: erase it again',
  );
}

async function* lostRecords(feed: Feed, from: number): AsyncIterable<AuditRecord[]> {
  let batch: AuditRecord[] = [];
  let bytes = 0;
  let message = await feed.nextRecord(await placeOf(feed, from));
  while (message !== null) {
    const record = feed.recordIn(message);
    if (record === null) throw new RefillFault(`message ${message.sequence} of AUDIT is not by audit`);
    if (ledgerSequenceOf(message) !== record.sequence)
      throw new RefillFault(`message ${message.sequence} of AUDIT names another record in its header`);
    batch.push(record);
    bytes += message.data.length;
    if (batch.length >= batchRecords || bytes >= batchBytes) {
      yield batch;
      [batch, bytes] = [[], 0];
    }
    message = await feed.nextRecord(message.sequence + 1);
  }
  if (batch.length > 0) yield batch;
}

/** Stream sequence from which on the records are at or after `ledgerSequence`: they lie there in order. */
async function placeOf(feed: Feed, ledgerSequence: number): Promise<number> {
  const { firstSequence, lastSequence } = await feed.state();
  let [low, high] = [firstSequence, lastSequence];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const message = await feed.nextRecord(middle);
    const found = message === null ? null : ledgerSequenceOf(message);
    if (found === null || found >= ledgerSequence) high = middle;
    else low = (message?.sequence ?? middle) + 1;
  }
  return low;
}

async function compare(ledger: Ledger, { treeSize, rootHash }: AuditCheckpoint): Promise<void> {
  if (treeSize > ledger.size)
    throw new UsageError(
      `the newest checkpoint on the bus covers ${treeSize} records, the ledger has only ${ledger.size}: an older ` +
        'ledger would fork history. Restore the newest ledger, or purge AUDIT to begin anew.',
    );
  if (sameHash(await rootOf(ledger.store, treeSize), rootHash)) return;
  throw new UsageError(
    `the first ${treeSize} records of the ledger are not those of the newest checkpoint on the bus: one of them was ` +
      'changed. `sandbus audit verify` looks for it. Restore the ledger, or purge AUDIT to begin anew.',
  );
}
