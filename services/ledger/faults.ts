/** What goes wrong with a ledger and cannot pass by itself. */
import { UsageError } from '../platform/errors.ts';

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

/** The ledger is not the one on which a batch was planned. */
export const headMoved = (found: { readonly size: number }, expectedSize: number): LostLedgerError =>
  new LostLedgerError(
    `the ledger has ${found.size} records and not the ${expectedSize} that were written here, or another last one: ` +
      'another writer has taken over, or the database was set back',
  );
