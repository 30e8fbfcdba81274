/** Where the feed stood at a quiet moment: the record last published, and its place in AUDIT. */
import type { DatabaseSync } from 'node:sqlite';

export interface FeedPosition {
  /** Sequence of the last published record; -1 before the first. */
  readonly ledgerSequence: number;
  /** Last sequence of AUDIT then. */
  readonly streamSequence: number;
}

export class FeedStore {
  readonly #database: DatabaseSync;

  constructor(database: DatabaseSync) {
    this.#database = database;
  }

  read(): FeedPosition | null {
    const found = this.#database
      .prepare('SELECT ledger_sequence AS ledgerSequence, stream_sequence AS streamSequence FROM feed')
      .get();
    return (found as FeedPosition | undefined) ?? null;
  }

  write(position: FeedPosition): void {
    this.#database
      .prepare('INSERT OR REPLACE INTO feed VALUES (0, ?, ?)')
      .run(position.ledgerSequence, position.streamSequence);
  }
}
