/** What a verification finds, each with where and with what to do; a bounded list, so that it goes on to the end. */

/** What is wrong → what to do. Every finding is one of these. */
export const mends = {
  missing: 'restore the records from a backup; without one, take them from the copies on the stream AUDIT',
  unreadable:
    'the database itself is damaged: restore a backup, and let the audit service refill the rest from AUDIT',
  truncated: 'restore the newest backup, and let the audit service refill the rest from AUDIT',
  leaf: 'compare the record with a backup or with its copy on AUDIT, and keep both: one of them was changed',
  payload: 'compare the payload with a backup or with its copy on AUDIT: it is not the one that was recorded',
  columns: 'compare the record with a backup: tenant, job and kind do not belong to its subject',
  chain: 'compare the records of this job with a backup: one was changed, taken out or put in',
  order: 'compare the records of this tenant with a backup: one was taken out or put in',
  time: 'compare the record with a backup, and look at the clock of the audit service',
  signature: 'compare the event with its copy on AUDIT, and the keys with the service-keys.json of that time',
  subtree: 'proofs made of it are wrong, the records are not: restore the row from a backup',
  checkpoint: 'compare the checkpoint with those that were published on audit-checkpoint and kept',
  job: 'the record itself is whole, what is told about the job is not: restore the row from a backup',
  unsigned:
    'start the audit service, which signs what was recorded just before it was killed; whatever was recorded earlier has been signed, and the checkpoint was taken out: compare with one that was published on audit-checkpoint and kept',
  stray: 'take the record out: it was put in by hand, and no event of the log can be there',
  kept: 'the log is not the one of which the kept checkpoint was signed: keep both, and restore from a backup',
} as const;
export type FindingKind = keyof typeof mends;

export interface Finding {
  readonly kind: FindingKind;
  /** Ledger sequence at which it shows. */
  readonly sequence: number;
  readonly fault: string;
  readonly mend: string;
}

export class Findings {
  readonly list: Finding[] = [];
  readonly #most: number;
  /** Found beyond those in the list. */
  more = 0;

  constructor(most: number) {
    this.#most = most;
  }

  get none(): boolean {
    return this.list.length === 0;
  }

  add(kind: FindingKind, sequence: number, fault: string): void {
    if (this.list.length >= this.#most) this.more += 1;
    else this.list.push({ kind, sequence, fault, mend: mends[kind] });
  }
}
