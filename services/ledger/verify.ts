/**
 * Verifies a ledger: makes everything that is derived from the records again and compares it with what is stored and
 * signed. Reads only, a page at a time, beside a service that goes on writing. Every fault is one finding with its place
 * and with what to do, and the verification goes on to the end.
 *
 * It shows that the database is in itself whole. Whoever owns both the database and the log's key could write another
 * history that is whole too: only a checkpoint that was kept elsewhere (`kept`, `since`) finds that.
 */
import type { AuditRecord } from '../platform/codec.ts';
import { messageOf, OperationalError, UsageError } from '../platform/errors.ts';
import type { Keyring } from '../platform/event-keys.ts';
import type { LedgerReader } from './store.ts';
import type { SignedCheckpoint } from './tlog/checkpoint.ts';
import { CompactRange } from './tlog/compact-range.ts';
import { sameHash } from './tlog/merkle.ts';
import type { VerifierKey } from './tlog/note.ts';
import { compactRangeAt, MissingHashes } from './tlog/proofs.ts';
import type { Finding } from './verify-findings.ts';
import { Findings } from './verify-findings.ts';
import { checkJobs } from './verify-jobs.ts';
import { RecordChecks } from './verify-records.ts';
import { TreeChecks } from './verify-tree.ts';

export interface VerifyOptions {
  /** The log's public key; null where signatures of checkpoints are not to be checked. */
  readonly key: VerifierKey | null;
  /** A checkpoint from outside of the database, its signature checked already: the log must begin as it says. */
  readonly kept?: SignedCheckpoint | null;
  /** The same, and only what came after it is verified. */
  readonly since?: SignedCheckpoint | null;
  /** The services' public keys: also checks the signature of each event. Costs some 60 µs an event. */
  readonly keyring?: Keyring | null;
  /** Also compares the rows of jobs with what their records say. Takes as long again. */
  readonly jobs?: boolean;
  readonly onProgress?: (done: number, size: number) => void;
  /** Findings that are told one by one; the rest is counted. 100 unless set. */
  readonly mostFindings?: number;
  /** Microseconds; the clock of this machine unless set. */
  readonly now?: number;
}

export interface VerifyReport {
  readonly ok: boolean;
  /** Records from here to `size` were verified. */
  readonly from: number;
  readonly size: number;
  /** Of all records; null where it could not be made. */
  readonly root: Uint8Array | null;
  readonly checkpoints: number;
  /** So many records from the first on are covered by a checkpoint; those after it were recorded in the last seconds. */
  readonly covered: number;
  /** Records without a payload: erased, so that only their digest was verified. */
  readonly erased: number;
  readonly validSignatures: number;
  readonly findings: readonly Finding[];
  /** Beyond those in the list. */
  readonly moreFindings: number;
}

/** Throws OperationalError LEDGER_UNAVAILABLE, and UsageError for options that contradict each other. */
export async function verifyLedger(reader: LedgerReader, options: VerifyOptions): Promise<VerifyReport> {
  const { key, kept = null, since = null, keyring = null, onProgress } = options;
  if (since !== null && kept !== null && kept.size < since.size)
    throw new UsageError(`the kept checkpoint of ${kept.size} records lies before --since, of ${since.size}`);
  const findings = new Findings(options.mostFindings ?? 100);
  const { size } = await reader.head();
  const from = Math.min(since?.size ?? 0, size);
  const range = await startingRange(reader, from, since, findings);
  const beginsAsKept = range !== null && since !== null;
  const tree = new TreeChecks({ reader, findings, key, kept, beginsAsKept }, range ?? CompactRange.empty());
  const records = new RecordChecks(findings, keyring);
  if (range !== null) await tree.begin();
  await findStrays(reader, findings);
  let next = from;
  for await (const batch of pages(reader, from, size)) {
    if (from > 0) await records.fetchPredecessors(reader, batch.records, from);
    for (const record of batch.records) {
      if (record.sequence > next) noteMissing(findings, records, next, record.sequence);
      next = record.sequence + 1;
      const leafHash = records.check(record);
      if (tree.size === record.sequence) await tree.add(record.leafHash, leafHash);
    }
    if (batch.unreadable !== null) {
      const { sequence, reason } = batch.unreadable;
      if (sequence > next) noteMissing(findings, records, next, sequence);
      findings.add(
        'unreadable',
        sequence,
        `ledger sequence ${sequence} cannot be read (${reason}); ${notCompared}`,
      );
      records.expectGaps(1);
      next = sequence + 1;
    }
    onProgress?.(next, size);
  }
  if (next < size) noteMissing(findings, records, next, size);
  if (options.jobs === true) await checkJobs(reader, findings, records.jobs, { size, all: from === 0 });
  await tree.end(Math.max(size, since?.size ?? 0));
  const { covered } = tree;
  if (findings.none && covered < size)
    await findUnsigned(reader, findings, [covered, size], options.now ?? Date.now() * 1000);
  const { list, more } = findings;
  return {
    ...{ ok: findings.none, from, size, root: tree.size === size ? tree.root() : null },
    ...{
      covered,
      checkpoints: tree.checkpoints,
      erased: records.erased,
      validSignatures: records.validSignatures,
    },
    ...{ findings: list, moreFindings: more },
  };
}

/** Records in front of the first one: in no tree, and yet readers would find them by tenant or job. */
async function findStrays(reader: LedgerReader, findings: Findings): Promise<void> {
  const { records } = await readPage(reader, Number.MIN_SAFE_INTEGER);
  const first = records[0]?.sequence ?? 0;
  if (first < 0)
    findings.add('stray', first, `there is a ledger sequence ${first}, in front of the first one`);
}

/**
 * The log signs every second, and when it stops. What is older and is signed by nobody can have been written by anybody who
 * can write the database: they would take out the checkpoints that tell.
 */
const mostUnsignedMicros = 60_000_000;

async function findUnsigned(
  reader: LedgerReader,
  findings: Findings,
  [covered, size]: readonly [number, number],
  now: number,
): Promise<void> {
  const [first] = await reader.recordsAt([covered]);
  if (first === undefined || now - first.recordedAt <= mostUnsignedMicros) return;
  findings.add('unsigned', covered, `${sequencesAre(covered, size)} covered by no checkpoint`);
}

const notCompared = 'roots of what comes after were not compared';

/** The tree as it was at `from`, by stored hashes; null when those are not there, or are not those that were signed. */
async function startingRange(
  reader: LedgerReader,
  from: number,
  since: SignedCheckpoint | null,
  findings: Findings,
): Promise<CompactRange | null> {
  try {
    const range = await compactRangeAt(reader, from);
    if (since === null || since.size !== from || sameHash(range.root(), since.root)) return range;
    findings.add(
      'kept',
      from,
      `the first ${from} records do not have the root of the kept checkpoint; ${notCompared}`,
    );
    return null;
  } catch (error) {
    if (!(error instanceof MissingHashes)) throw error;
    findings.add(
      'subtree',
      from,
      `the tree of the first ${from} records cannot be made: ${messageOf(error)}; ${notCompared}`,
    );
    return null;
  }
}

/** Of those from `first` to before `next`, the beginning of a sentence. */
const sequencesAre = (first: number, next: number): string =>
  next - first === 1 ? `ledger sequence ${first} is` : `ledger sequences ${first} to ${next - 1} are`;

function noteMissing(findings: Findings, records: RecordChecks, first: number, next: number): void {
  findings.add('missing', first, `${sequencesAre(first, next)} missing; ${notCompared}`);
  records.expectGaps(next - first);
}

/** Small, so that what was read is garbage again before it is moved: five times as many take twice the memory. */
const page = { records: 100, bytes: 4 * 1024 * 1024 };

interface Batch {
  readonly records: readonly AuditRecord[];
  /** The record behind these, where it cannot be read. */
  readonly unreadable: { readonly sequence: number; readonly reason: string } | null;
  /** Where the next one begins; null after the last. */
  readonly next: number | null;
}

/** The records from `from` to before `end`. The next page is under way while one is looked at. */
async function* pages(reader: LedgerReader, from: number, end: number): AsyncGenerator<Batch> {
  for (let pending = readPage(reader, from); ; ) {
    const { records, unreadable, next } = await pending;
    if (next === null) return;
    const isLast = next >= end;
    if (!isLast) pending = readPage(reader, next);
    // Whoever stops in between never asks for it.
    pending.catch(() => undefined);
    yield { records: records.filter(({ sequence }) => sequence < end), unreadable, next };
    if (isLast) return;
  }
}

/** A page; where a record in it cannot be read, those in front of it. */
async function readPage(reader: LedgerReader, from: number): Promise<Batch> {
  try {
    const records = await reader.records(from, page);
    const last = records.at(-1)?.sequence;
    return { records, unreadable: null, next: last === undefined ? null : last + 1 };
  } catch (error) {
    if (error instanceof OperationalError) throw error;
    return readOneByOne(reader, from);
  }
}

/** Finds out which record it is that cannot be read. */
async function readOneByOne(reader: LedgerReader, from: number): Promise<Batch> {
  const records: AuditRecord[] = [];
  for (let sequence = from; sequence < from + page.records; sequence += 1)
    try {
      records.push(...(await reader.recordsAt([sequence])));
    } catch (error) {
      if (error instanceof OperationalError) throw error;
      return { records, unreadable: { sequence, reason: messageOf(error) }, next: sequence + 1 };
    }
  return { records, unreadable: null, next: from + page.records };
}
