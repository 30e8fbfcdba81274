/**
 * The proof of a job: one JSON file that anybody checks offline with the log's public key alone. It holds a signed
 * checkpoint and, for each event of the job in order, its leaf, the path from the leaf to the checkpoint's root, and
 * (where they were not left out or erased) the event's bytes with their salt and the signature of the service.
 *
 * Each leaf names the leaf before it of the same job. So from the first, which names none, to a terminal event the line
 * is complete: the log cannot have left out an event in between without having signed something else at the time.
 * Pure: no files, no bus, no clock.
 */
import { z } from 'zod';
import { authorFault } from '../../platform/authorship.ts';
import type { AuditLeaf, AuditRecord } from '../../platform/codec.ts';
import { decodeAs } from '../../platform/codec.ts';
import { messageOf } from '../../platform/errors.ts';
import type { Keyring } from '../../platform/event-keys.ts';
import type { JobRef } from '../../platform/topology.ts';
import { isJobId, isSubmission, isTenant, parseJobSubject, terminalKinds } from '../../platform/topology.ts';
import type { SignedCheckpoint } from './checkpoint.ts';
import { openCheckpoint } from './checkpoint.ts';
import { signatureFault } from './event-signature.ts';
import { isPayloadOf, leafBytes } from './leaf.ts';
import { checkInclusion, hashBytes, hashLeaf, sameHash } from './merkle.ts';
import type { Parsed, VerifierKey } from './note.ts';
import { decodeBase64 } from './note.ts';

export const jobProofFormat = 'sandbus-job-proof/1';
/** A job has a handful of events; late ones of a tenant that goes on cancelling do not belong in a proof. */
export const mostLeaves = 10_000;
/** A tree of 2^53 leaves is no higher. */
const longestPath = 53;

const base64 = z.string().refine((text) => decodeBase64(text) !== null, 'must be base64, padded');
const leafShape = z.strictObject({
  /** AuditLeaf, single-object encoded: what the tree hashes. */
  leaf: base64,
  /** Hashes from the leaf up to the root. */
  inclusion: z.array(base64).max(longestPath),
  /** The event's bytes and their salt: both or neither. */
  payload: base64.optional(),
  salt: base64.optional(),
  /** Key id and Ed25519 signature of the service that made the event (SECURITY.md). */
  signature: base64.optional(),
});
const fileShape = z.strictObject({
  format: z.literal(jobProofFormat),
  tenant: z.string().refine(isTenant, 'must be a tenant'),
  jobId: z.string().refine(isJobId, 'must be a UUIDv7 in lower case'),
  /** The signed note. */
  checkpoint: z.string(),
  leaves: z.array(leafShape).min(1).max(mostLeaves),
});
export type JobProof = z.infer<typeof fileShape>;
type ProofLeaf = z.infer<typeof leafShape>;

export interface ProvedEvent extends AuditLeaf {
  readonly kind: string;
  /** The event's bytes; null where the proof has only their digest. */
  readonly payload: Uint8Array | null;
  /** `unchecked`: there is one, and no keys were given or no bytes are there to check it over. */
  readonly signature: 'valid' | 'unchecked' | 'none';
}

export interface ProvedJob extends JobRef {
  readonly checkpoint: SignedCheckpoint;
  /** From the first to the last, none left out. */
  readonly events: readonly ProvedEvent[];
  /** True when the last event is the one that ended the job: then these are all that led to it. */
  readonly complete: boolean;
}

export type JobVerdict =
  | { readonly ok: true; readonly value: ProvedJob }
  /** Every fault that was found, each a sentence. */
  | { readonly ok: false; readonly faults: readonly string[] };

// --- Making

/** One leaf of a proof. `withPayload`: with the event itself, where it was not erased. */
export function proofLeaf(record: AuditRecord, path: readonly Uint8Array[], withPayload: boolean): ProofLeaf {
  const { payload, payloadSalt, signature } = record;
  return {
    leaf: text(leafBytes(record)),
    inclusion: path.map(text),
    ...(payload !== null && withPayload ? { payload: text(payload), salt: text(payloadSalt) } : {}),
    ...(signature === null ? {} : { signature: text(signature) }),
  };
}

/** The records that belong into a proof: those up to the terminal event, or all while there is none. */
export function upToTerminal<R extends { readonly kind: string }>(records: readonly R[]): readonly R[] {
  const end = records.findIndex(({ kind }) => isTerminal(kind));
  return end === -1 ? records : records.slice(0, end + 1);
}

export const isTerminal = (kind: string): boolean => terminalKinds.some((terminal) => terminal === kind);

const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64');

// --- Checking

/**
 * Checks the whole proof with the log's key; with the services' public keys (`service-keys.json` of that time) also the
 * signature of each event whose bytes are there.
 */
export function checkJobProof(
  file: Uint8Array,
  key: VerifierKey,
  keyring: Keyring | null = null,
): JobVerdict {
  const parsed = parseProof(file);
  if (!parsed.ok) return { ok: false, faults: [parsed.reason] };
  const proof = parsed.value;
  const opened = openCheckpoint(Buffer.from(proof.checkpoint), key);
  if (!opened.ok) return { ok: false, faults: [opened.reason] };
  const checkpoint = opened.value;
  const line = new Line(proof);
  const events: ProvedEvent[] = [];
  for (const [at, leaf] of proof.leaves.entries()) {
    const event = line.add(at, leaf, checkpoint, keyring);
    if (event !== null) events.push(event);
  }
  const faults = [...line.faults, ...line.shapeFaults()];
  if (faults.length > 0) return { ok: false, faults };
  const { tenant, jobId } = proof;
  return {
    ok: true,
    value: { tenant, jobId, checkpoint, events, complete: isTerminal(events.at(-1)?.kind ?? '') },
  };
}

function parseProof(file: Uint8Array): Parsed<JobProof> {
  let json: unknown;
  try {
    json = JSON.parse(Buffer.from(file).toString('utf8'));
  } catch (error) {
    return { ok: false, reason: `the proof is not JSON: ${messageOf(error)}` };
  }
  const parsed = fileShape.safeParse(json);
  if (parsed.success) return { ok: true, value: parsed.data };
  return {
    ok: false,
    reason: `the proof is not of the form ${jobProofFormat}: ${z.prettifyError(parsed.error)}`,
  };
}

/** Follows the line of a job's leaves and notes what is wrong with it. */
class Line {
  readonly faults: string[] = [];
  readonly #job: JobRef;
  readonly #kinds: string[] = [];
  #last: { readonly leaf: AuditLeaf; readonly hash: Uint8Array } | null = null;

  constructor({ tenant, jobId }: JobRef) {
    this.#job = { tenant, jobId };
  }

  /** The event, or null when not even its leaf can be read. Its other faults are noted, and the next one is looked at. */
  add(
    at: number,
    entry: ProofLeaf,
    checkpoint: SignedCheckpoint,
    keyring: Keyring | null,
  ): ProvedEvent | null {
    const bytes = Buffer.from(entry.leaf, 'base64');
    const leaf = readLeaf(bytes);
    if (!leaf.ok) {
      this.faults.push(`leaf ${at + 1} of the proof: ${leaf.reason}`);
      return null;
    }
    const hash = hashLeaf(bytes);
    const kind = this.#kindOf(leaf.value);
    const payload = payloadOf(entry, leaf.value);
    const signature = payload.ok ? checkSignature(entry, leaf.value, payload.value, keyring) : payload;
    const author = authorOf(leaf.value);
    const { size, root } = checkpoint;
    const path = entry.inclusion.map((one) => Buffer.from(one, 'base64'));
    const included = checkInclusion({ leafHash: hash, index: leaf.value.sequence, size, root }, path);
    for (const checked of [kind, included, this.#follows(leaf.value), author, payload, signature])
      if (!checked.ok) this.faults.push(`event ${leaf.value.sequence}: ${checked.reason}`);
    this.#last = { leaf: leaf.value, hash };
    this.#kinds.push(kind.ok ? kind.value : '');
    if (!kind.ok || !payload.ok || !signature.ok) return null;
    return { ...leaf.value, kind: kind.value, payload: payload.value, signature: signature.value };
  }

  #kindOf({ subject }: AuditLeaf): Parsed<string> {
    const parsed = parseJobSubject(subject);
    const { tenant, jobId } = this.#job;
    if (parsed?.tenant === tenant && parsed.jobId === jobId) return { ok: true, value: parsed.kind };
    return { ok: false, reason: `${subject} is no event of job ${jobId} of ${tenant}` };
  }

  #follows(leaf: AuditLeaf): Parsed<true> {
    const last = this.#last;
    if (last === null)
      return leaf.previousLeafHash.length === 0
        ? { ok: true, value: true }
        : { ok: false, reason: 'it is not the first event of its job: what came before is left out' };
    if (leaf.sequence <= last.leaf.sequence)
      return {
        ok: false,
        reason: `it stands after event ${last.leaf.sequence}: the order is wrong, or it is there twice`,
      };
    if (!sameHash(leaf.previousLeafHash, last.hash))
      return { ok: false, reason: `event ${last.leaf.sequence} is not the one before it: some are left out` };
    if (leaf.recordedAt < last.leaf.recordedAt)
      return { ok: false, reason: `it was recorded before event ${last.leaf.sequence}, which it follows` };
    return { ok: true, value: true };
  }

  /** What only the whole line shows. */
  shapeFaults(): string[] {
    const faults: string[] = [];
    const end = this.#kinds.findIndex(isTerminal);
    if (end !== -1 && end !== this.#kinds.length - 1)
      faults.push(`the proof goes on after the terminal event ${this.#kinds[end]}`);
    if (end !== -1 && !this.#kinds.includes('submitted'))
      faults.push('the job ended and was never submitted');
    return faults;
  }
}

/** One leaf in the one form that encoding gives. */
function readLeaf(bytes: Uint8Array): Parsed<AuditLeaf> {
  try {
    const leaf = decodeAs('AuditLeaf', bytes);
    if (leaf.sequence < 0) return { ok: false, reason: `it has the sequence ${leaf.sequence}` };
    if (![0, hashBytes].includes(leaf.previousLeafHash.length) || leaf.payloadHash.length !== hashBytes)
      return { ok: false, reason: `its hashes do not have ${hashBytes} bytes` };
    return sameHash(leafBytes(leaf), bytes)
      ? { ok: true, value: leaf }
      : { ok: false, reason: 'its bytes are not the ones that encoding gives' };
  } catch (error) {
    return { ok: false, reason: messageOf(error) };
  }
}

function payloadOf({ payload, salt }: ProofLeaf, leaf: AuditLeaf): Parsed<Uint8Array | null> {
  if (payload === undefined && salt === undefined) return { ok: true, value: null };
  if (payload === undefined || salt === undefined)
    return { ok: false, reason: 'payload and salt are there together or not at all' };
  const bytes = Buffer.from(payload, 'base64');
  if (isPayloadOf(leaf, Buffer.from(salt, 'base64'), bytes)) return { ok: true, value: bytes };
  return { ok: false, reason: 'its payload is not the one that was recorded' };
}

function authorOf({ subject, signer }: AuditLeaf): Parsed<true> {
  const reason = authorFault(subject, signer);
  return reason === null ? { ok: true, value: true } : { ok: false, reason };
}

function checkSignature(
  { signature }: ProofLeaf,
  leaf: AuditLeaf,
  payload: Uint8Array | null,
  keyring: Keyring | null,
): Parsed<ProvedEvent['signature']> {
  if (isSubmission(leaf.subject)) return { ok: true, value: 'none' };
  if (keyring === null) return { ok: true, value: signature === undefined ? 'none' : 'unchecked' };
  if (signature === undefined) return { ok: false, reason: `it has no signature of ${leaf.signer}` };
  if (payload === null)
    return { ok: false, reason: 'its signature cannot be checked, since its payload is not in the proof' };
  const fault = signatureFault({ ...leaf, payload, signature: Buffer.from(signature, 'base64') }, keyring);
  return fault === null ? { ok: true, value: 'valid' } : { ok: false, reason: fault };
}

// --- Telling

/** What the proof shows, and what it does not, in two sentences. */
export function saysWhat({ tenant, jobId, checkpoint, events, complete }: ProvedJob): string {
  const { origin, size } = checkpoint;
  const [first, last] = [events[0], events.at(-1)];
  const place = `the ${events.length} events of job ${jobId} of tenant ${tenant} from ${first?.kind} (${first?.sequence}) to ${last?.kind} (${last?.sequence}) stand in the log ${origin} of ${size} events, in this order`;
  return complete
    ? `Proved: ${place}, and none between submission and terminal event is left out.`
    : `Proved: ${place}, and none between them is left out. The job had not ended: later events may be missing.`;
}
