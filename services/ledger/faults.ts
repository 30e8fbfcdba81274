/** What goes wrong with a ledger and cannot pass by itself. */
import { UsageError } from '../platform/errors.ts';
import type { Head } from './store.ts';
import { sameHash } from './tlog/merkle.ts';

type Tip = Pick<Head, 'size' | 'lastLeafHash'>;

/**
 * This process is no longer the writer: another one has taken over, or the database was set back. Nothing of the refused
 * write was done. The process ends; started again it stands by, or refills.
 */
export class LostLedgerError extends UsageError {
  constructor(message: string) {
    super(
      `${message}. Nothing was written; this audit service ends, and stands by when it is started again`,
      1,
    );
  }
}

/** Throws LostLedgerError when the ledger is not the one on which a batch was planned. */
export function checkHead(found: Tip, expected: Tip): void {
  if (found.size === expected.size && sameHash(found.lastLeafHash, expected.lastLeafHash)) return;
  throw new LostLedgerError(
    `the ledger has ${found.size} records and not the ${expected.size} that were written here, or another last one: ` +
      'another writer has taken over, or the database was set back',
  );
}
