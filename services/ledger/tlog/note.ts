/**
 * Signed notes (c2sp.org/signed-note): text, an empty line, and one line for each signature, with Ed25519 keys alone.
 *
 *   text, ending with a newline
 *   (empty line)
 *   — <key name> base64(key id, 4 bytes || signature)
 *
 *   key id:        the first 4 bytes of SHA-256(key name || 0x0A || 0x01 || public key, 32 bytes)
 *   verifier key:  <key name>+<key id in hex>+base64(0x01 || public key)
 *
 * A note may carry signatures of others, as witnesses add them: those of unknown keys are kept and say nothing. Pure.
 */
import type { KeyObject } from 'node:crypto';
import { createPublicKey, hash, sign, verify } from 'node:crypto';
import type { Checked } from './merkle.ts';
import { bad, good } from './merkle.ts';

/** The public half of a key, with the name under which it signs. */
export interface VerifierKey {
  readonly name: string;
  /** 8 hex digits. */
  readonly keyId: string;
  readonly key: KeyObject;
}

/** The private half. */
export interface Signer {
  readonly name: string;
  readonly key: KeyObject;
}

export interface NoteSignature {
  readonly name: string;
  readonly keyId: string;
  readonly signature: Uint8Array;
}

export interface Note {
  /** With its last newline. */
  readonly text: string;
  readonly signatures: readonly NoteSignature[];
}

export type Parsed<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly reason: string };

const ed25519Type = 0x01;
const keyIdBytes = 4;
const publicKeyBytes = 32;
/** What stands before the 32 bytes of an Ed25519 key in a SubjectPublicKeyInfo (RFC 8410). */
const spkiPrefix = Buffer.from('302a300506032b6570032100', 'hex');

/** Room for a hundred signatures, post-quantum ones among them. */
const longestNote = 512 * 1024;
const mostSignatures = 100;
const longestName = 256;

// --- Keys

/** The public half of an Ed25519 key, public or private, under a name. Throws RangeError for a name or key that cannot be. */
export function verifierKeyOf(name: string, key: KeyObject): VerifierKey {
  if (!isKeyName(name)) throw new RangeError(`${JSON.stringify(name)} cannot name a key: ${nameRule}`);
  if (key.asymmetricKeyType !== 'ed25519')
    throw new RangeError(`an Ed25519 key is needed, not ${key.asymmetricKeyType}`);
  const publicKey = key.type === 'public' ? key : createPublicKey(key);
  return { name, keyId: keyIdOf(name, rawPublicKey(publicKey)), key: publicKey };
}

/** One line, as it is given to those who verify. */
export function formatVerifierKey({ name, keyId, key }: VerifierKey): string {
  return `${name}+${keyId}+${typedKey(rawPublicKey(key)).toString('base64')}`;
}

/** The reverse; white space around it does not matter. */
export function parseVerifierKey(text: string): Parsed<VerifierKey> {
  const [name = '', keyId = '', ...rest] = text.trim().split('+');
  // Base64 has plus signs of its own.
  const bytes = decodeBase64(rest.join('+'));
  if (!isKeyName(name) || !/^[0-9a-f]{8}$/.test(keyId) || bytes === null)
    return bad('a verifier key is NAME+KEYID+KEY: a name, 8 hex digits, and base64');
  if (bytes[0] !== ed25519Type || bytes.length !== 1 + publicKeyBytes)
    return bad(`the verifier key ${name} is not Ed25519 (type 1 and 32 bytes)`);
  const raw = bytes.subarray(1);
  if (keyIdOf(name, raw) !== keyId)
    return bad(`the key id ${keyId} is not that of this name and key: part of the line was changed`);
  try {
    const key = createPublicKey({ key: Buffer.concat([spkiPrefix, raw]), format: 'der', type: 'spki' });
    return { ok: true, value: { name, keyId, key } };
  } catch {
    return bad(`the verifier key ${name} is no point of the curve`);
  }
}

const rawPublicKey = (key: KeyObject): Buffer =>
  key.export({ type: 'spki', format: 'der' }).subarray(-publicKeyBytes);
const typedKey = (raw: Uint8Array): Buffer => Buffer.concat([Uint8Array.of(ed25519Type), raw]);

function keyIdOf(name: string, raw: Uint8Array): string {
  const digest = hash('sha256', Buffer.concat([Buffer.from(`${name}\n`), typedKey(raw)]), 'buffer');
  return digest.toString('hex', 0, keyIdBytes);
}

const nameRule = `1 to ${longestName} characters without spaces, plus signs and control characters`;
function isKeyName(name: string): boolean {
  return (
    name.length > 0 &&
    name.length <= longestName &&
    !/[\p{White_Space}\p{Cc}+]/u.test(name) &&
    name.isWellFormed()
  );
}

// --- Notes

/** The note with one signature. Throws RangeError for a text that cannot be one. */
export function signNote(text: string, signer: Signer): Uint8Array {
  const fault = textFault(text);
  if (fault !== null) throw new RangeError(fault);
  const { name, keyId } = verifierKeyOf(signer.name, signer.key);
  const signature = sign(null, Buffer.from(text), signer.key);
  return formatNote({ text, signatures: [{ name, keyId, signature }] });
}

export function formatNote({ text, signatures }: Note): Uint8Array {
  const lines = signatures.map(({ name, keyId, signature }) => {
    const bytes = Buffer.concat([Buffer.from(keyId, 'hex'), signature]);
    return `— ${name} ${bytes.toString('base64')}\n`;
  });
  return Buffer.from(`${text}\n${lines.join('')}`);
}

/** What the bytes say, before anybody believes it. */
export function parseNote(bytes: Uint8Array): Parsed<Note> {
  if (bytes.length > longestNote) return bad(`the note has more than ${longestNote} bytes`);
  const whole = decodeUtf8(bytes);
  if (whole === null) return bad('the note is not UTF-8');
  const end = whole.lastIndexOf('\n\n');
  if (end === -1) return bad('the note has no empty line between text and signatures');
  const text = whole.slice(0, end + 1);
  const fault = textFault(text);
  if (fault !== null) return bad(fault);
  const lines = whole.slice(end + 2).split('\n');
  if (lines.pop() !== '' || lines.length === 0)
    return bad('the note has no signatures, each a line with a newline');
  if (lines.length > mostSignatures) return bad(`the note has more than ${mostSignatures} signatures`);
  const signatures = lines.map(parseSignature);
  const wrong = signatures.indexOf(null);
  if (wrong !== -1) return bad(`signature ${wrong + 1} of the note is not "— NAME BASE64"`);
  return { ok: true, value: { text, signatures: signatures as NoteSignature[] } };
}

/**
 * Whether at least one of the keys signed the note, and none of them is there with a wrong signature. (The note's own
 * words about its signers are hints; the keys are what was configured.)
 */
export function checkNote({ text, signatures }: Note, keys: readonly VerifierKey[]): Checked {
  let found = false;
  for (const { name, keyId, signature } of signatures) {
    const known = keys.find((key) => key.name === name && key.keyId === keyId);
    if (known === undefined) continue;
    if (!verify(null, Buffer.from(text), known.key, signature))
      return bad(`the signature of ${name} (key ${keyId}) is not over this text`);
    found = true;
  }
  if (found) return good;
  const wanted = keys.map(({ name, keyId }) => `${name} (key ${keyId})`).join(' or ');
  const there = signatures.map(({ name, keyId }) => `${name} (key ${keyId})`).join(', ');
  return bad(`the note is not signed by ${wanted || 'any key that is known'}; it has signatures of ${there}`);
}

function textFault(text: string): string | null {
  if (!text.endsWith('\n') || text === '\n') return 'the text of a note ends with a newline and is not empty';
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
  if (/[\u0000-\u0009\u000b-\u001f]/.test(text))
    return 'the text of a note has no control characters but newlines';
  return text.isWellFormed() ? null : 'the text of a note is Unicode without lone surrogates';
}

function parseSignature(line: string): NoteSignature | null {
  const [dash, name = '', base64 = '', ...rest] = line.split(' ');
  const bytes = decodeBase64(base64);
  if (dash !== '—' || !isKeyName(name) || rest.length > 0 || bytes === null || bytes.length <= keyIdBytes)
    return null;
  return { name, keyId: bytes.toString('hex', 0, keyIdBytes), signature: bytes.subarray(keyIdBytes) };
}

/** RFC 4648, section 4, in the one form that encoding gives: Node's own decoder takes almost anything. */
export function decodeBase64(text: string): Buffer | null {
  const bytes = Buffer.from(text, 'base64');
  return bytes.toString('base64') === text ? bytes : null;
}

function decodeUtf8(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}
