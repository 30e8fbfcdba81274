/**
 * Checkpoints (c2sp.org/tlog-checkpoint): a signed note whose text says how many leaves a log has and what their root
 * is. A copy that somebody keeps outside of the log's own database holds the log to it for ever. Pure.
 *
 *   <origin: the name of the log>
 *   <leaves, decimal>
 *   <root, base64>
 */
import type { TreeHead } from './merkle.ts';
import { bad, hashBytes } from './merkle.ts';
import type { Note, Parsed, Signer, VerifierKey } from './note.ts';
import { checkNote, decodeBase64, parseNote, signNote } from './note.ts';

export interface Checkpoint extends TreeHead {
  /** Names the log, as its key does. */
  readonly origin: string;
}

export interface SignedCheckpoint extends Checkpoint {
  readonly note: Note;
}

/** The signed note. The log is named as its key. Throws RangeError for numbers and names that cannot be. */
export function signCheckpoint({ size, root }: TreeHead, signer: Signer): Uint8Array {
  if (!Number.isSafeInteger(size) || size < 0) throw new RangeError(`a tree cannot have ${size} leaves`);
  if (root.length !== hashBytes) throw new RangeError(`a root has ${hashBytes} bytes, not ${root.length}`);
  return signNote(`${signer.name}\n${size}\n${Buffer.from(root).toString('base64')}\n`, signer);
}

/** What the bytes say, before anybody believes it. */
export function parseCheckpoint(bytes: Uint8Array): Parsed<SignedCheckpoint> {
  const note = parseNote(bytes);
  if (!note.ok) return note;
  const [origin = '', size = '', root64 = '', ...extensions] = note.value.text.slice(0, -1).split('\n');
  if (origin === '') return bad('the checkpoint names no log');
  if (!/^(0|[1-9][0-9]{0,15})$/.test(size) || !Number.isSafeInteger(Number(size)))
    return bad('the second line of a checkpoint is the number of leaves');
  const root = decodeBase64(root64);
  if (root?.length !== hashBytes)
    return bad(`the third line of a checkpoint is a root of ${hashBytes} bytes, in base64`);
  if (extensions.includes('')) return bad('the checkpoint has an empty line in its text');
  return { ok: true, value: { origin, size: Number(size), root, note: note.value } };
}

/** The checkpoint, if the log with this key signed it, under the name that the key has. */
export function openCheckpoint(bytes: Uint8Array, key: VerifierKey): Parsed<SignedCheckpoint> {
  const parsed = parseCheckpoint(bytes);
  if (!parsed.ok) return parsed;
  const checked = checkNote(parsed.value.note, [key]);
  if (!checked.ok) return checked;
  if (parsed.value.origin === key.name) return parsed;
  return bad(`the checkpoint is of the log ${parsed.value.origin}, the key of ${key.name}`);
}
