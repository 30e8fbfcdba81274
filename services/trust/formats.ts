// The written forms that the trust documents share: names, digests, instants, Base64. Each is narrow on purpose, so
// that one thing can be written in one way only.

import { z } from 'zod';
import { accept, type Checked, quote, reject } from './reasons.ts';
import { type JsonBounds, parseStrictJson } from './strict-json.ts';

/** A SHA-256 in lower-case hex: a file's digest or a key id. */
export const sha256Hex = z.string().regex(/^[0-9a-f]{64}$/, 'must be a SHA-256 in 64 lower-case hex digits');

/** The rule of `pluginFileName` in words. A text of a schema has at most 80 characters, or is cut where it is said. */
export const fileNameRule = '1 to 128 of A-Z a-z 0-9 . _ + -, the first no . + -';

/** A plugin's file name. ASCII only, so that no two names look alike; never a path, a hidden file or an option. */
export const pluginFileName = z
  .string()
  .regex(/^[A-Za-z0-9_][A-Za-z0-9._+-]{0,127}$/, `must be a file name: ${fileNameRule}`);

/** A tenant is one token of a NATS subject. */
export const tenantName = z
  .string()
  .regex(/^[A-Za-z0-9_-]{1,64}$/, 'must be a tenant name: 1 to 64 of A-Z, a-z, 0-9, _ and -');

/** A point in time, always in UTC and with seconds: `2027-01-31T00:00:00Z`. */
export const instant = z
  .string()
  .regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{3})?Z$/, 'must be a time like 2027-01-31T00:00:00Z')
  .refine(isOnTheCalendar, 'is not a date of the calendar');

/** A whole number of at least one; everything that is limited here is counted in such numbers. */
export const positiveInteger = z.int().min(1).max(Number.MAX_SAFE_INTEGER);

export function instantMs(text: string): number {
  return Date.parse(text);
}

/** Writes a time in the form that `instant` reads; what is no time becomes a text that it refuses. */
export function formatInstant(ms: number): string {
  const date = new Date(ms);
  return Number.isNaN(date.getTime()) ? 'no valid time' : date.toISOString();
}

/** Date.parse turns the 30th of February into a day of March; writing the result again shows it. */
function isOnTheCalendar(text: string): boolean {
  const ms = Date.parse(text);
  return Number.isFinite(ms) && new Date(ms).toISOString().slice(0, 19) === text.slice(0, 19);
}

/** Reads a JSON document and holds it against its schema; all faults are reported together. */
export function parseDocument<T>(
  bytes: Uint8Array,
  bounds: JsonBounds,
  schema: z.ZodType<T>,
  name: string,
): Checked<T> {
  const json = parseStrictJson(bytes, bounds);
  if (!json.ok) return reject('MALFORMED', `${name}: ${json.detail}`);
  const parsed = schema.safeParse(json.value);
  return parsed.success
    ? accept(parsed.data)
    : reject('MALFORMED', `${name}: ${describeFaults(parsed.error)}`);
}

const FAULTS_SHOWN = 5;

function describeFaults(error: z.ZodError): string {
  const faults = error.issues.slice(0, FAULTS_SHOWN).map((issue) => {
    const where = issue.path.length === 0 ? '' : `${quote(issue.path.map(String).join('.'))} `;
    return where + shorten(issue.message);
  });
  const more = error.issues.length - faults.length;
  return faults.join('; ') + (more > 0 ? `; and ${more} more` : '');
}

/** Messages of the schema library repeat names of unknown fields, which come from strangers. */
function shorten(message: string): string {
  return quote(message).slice(1, -1).replaceAll('\\"', '"');
}

/**
 * Base64 in the standard or the URL-safe alphabet, as DSSE demands. Only the canonical text of some bytes is read:
 * no spaces, no missing or surplus padding (URL-safe text may go without), no stray bits at the end.
 */
export function decodeBase64(text: string): Uint8Array | null {
  const bytes = Buffer.from(text, 'base64');
  const standard = bytes.toString('base64');
  const urlSafe = standard.replaceAll('+', '-').replaceAll('/', '_');
  const readable = text === standard || text === urlSafe || text === bytes.toString('base64url');
  return readable ? new Uint8Array(bytes) : null;
}
