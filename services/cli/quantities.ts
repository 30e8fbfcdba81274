/** Sizes, durations, processor shares and times as people type and read them. */
import { UsageError } from '../platform/errors.ts';

const sizeUnits: Readonly<Record<string, number>> = {
  '': 1,
  K: 1024,
  M: 1024 ** 2,
  G: 1024 ** 3,
  T: 1024 ** 4,
};
const durationUnits: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

const mostBytes = 8191 * 1024 ** 4;

/** `256M`, `1.5G`, `4096`: bytes. K, M, G and T are powers of 1024. */
export function parseSize(text: string): number {
  const [, number, unit] = /^(\d+(?:\.\d+)?)([KMGT]?)(?:i?B)?$/i.exec(text.trim()) ?? [];
  const bytes = Math.round(Number(number) * (sizeUnits[unit?.toUpperCase() ?? ''] ?? Number.NaN));
  if (bytes >= 1 && bytes <= mostBytes) return bytes;
  throw wrong(`size ${text}`, '256M, 1.5G or a number of bytes; at least 1, at most 8191T');
}

/** With less the kernel cannot build the sandbox, or nothing starts in it; a shell takes 512 KiB. */
const leastMemoryBytes = 64 * 1024;

/** A size of memory for a job: bytes. */
export function parseMemory(text: string): number {
  const bytes = parseSize(text);
  if (bytes < leastMemoryBytes) throw wrong(`memory ${text}`, 'at least 64K, and 512K for a shell');
  return bytes;
}

/** A century, so that what lies so far ahead is still a date. */
const mostMs = 36_500 * 86_400_000;

/** `10s`, `500ms`, `2m`, `12h`, `90d`: milliseconds. The unit is not optional: nobody should have to guess it. */
export function parseDuration(text: string): number {
  const [, number, unit] = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text.trim()) ?? [];
  const ms = Math.round(Number(number) * (durationUnits[unit ?? ''] ?? Number.NaN));
  if (ms >= 1 && ms <= mostMs) return ms;
  throw wrong(`duration ${text}`, '500ms, 10s, 2m, 12h or 90d; at least 1ms, at most 36500d');
}

/** The kernel shares out a processor no finer than this. */
const leastCpuMillis = 10;
const mostCpuMillis = 1_000_000_000;

/** `0.5`, `2`: thousandths of a processor. */
export function parseCpus(text: string): number {
  const millis = /^\d+(?:\.\d+)?$/.test(text.trim()) ? Math.round(Number(text) * 1000) : Number.NaN;
  if (millis >= leastCpuMillis && millis <= mostCpuMillis) return millis;
  throw wrong(`processors ${text}`, '1, 2 or 0.5; at least 0.01, at most 1000000');
}

/** The schemas count in 32 bits. */
const mostCount = 2 ** 31 - 1;

/** A whole number of at least 1. */
export function parseCount(text: string): number {
  const count = /^\d+$/.test(text.trim()) ? Number(text) : Number.NaN;
  if (count >= 1 && count <= mostCount) return count;
  throw wrong(`number ${text}`, `a whole number; at least 1, at most ${mostCount}`);
}

/** A port of TCP; 0 is any free one. */
export function parsePort(text: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN;
  if (!(port <= 65_535)) throw wrong(`port ${JSON.stringify(text)}`, '0 to 65535');
  return port;
}

/** The number of a record: 0 or more. */
export function parseRecordNumber(text: string): number {
  const number = /^\d+$/.test(text.trim()) ? Number(text) : Number.NaN;
  if (!Number.isSafeInteger(number)) throw wrong(`record number ${text}`, 'a whole number, 0 or more');
  return number;
}

/** The number of the record after which reading begins; -1 is from the beginning. */
export function parseAfter(text: string): number {
  return text.trim() === '-1' ? -1 : parseRecordNumber(text);
}

/** `90d` from `nowMs`, or a day or instant in UTC: `2027-01-31`, `2027-01-31T12:00:00Z`. Milliseconds since 1970. */
export function parseInstant(text: string, nowMs: number): number {
  if (/^\d/.test(text) && !text.includes('-')) return nowMs + parseDuration(text);
  const ms = parseCalendar(text);
  if (ms === null) throw wrong(`time ${text}`, '90d (from now), 2027-01-31 or 2027-01-31T12:00:00Z');
  return ms;
}

/** The same for an end that is still to come: what is over is good for nothing, so it is a mistake. */
export function parseEnd(text: string, nowMs: number): number {
  const ms = parseInstant(text, nowMs);
  if (ms <= nowMs) throw new UsageError(`${text} is over: it was ${formatTime(ms)} UTC`);
  return ms;
}

/** A day or instant in UTC; null for what looks like none. */
function parseCalendar(text: string): number | null {
  if (!/^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,3})?)?Z)?$/.test(text)) return null;
  const ms = Date.parse(text);
  // Date.parse makes the 30th of February a day of March.
  if (Number.isFinite(ms) && new Date(ms).toISOString().startsWith(text.slice(0, 10))) return ms;
  throw wrong(`date ${text}`, 'a date of the calendar, in UTC');
}

/** A time in the past: `2h` or `2h ago`, or a day or instant in UTC. Milliseconds since 1970. */
export function parsePast(text: string, nowMs: number): number {
  const [, age] = /^(\d\S*?)(?: +ago)?$/.exec(text.trim()) ?? [];
  if (age !== undefined && !age.includes('-')) return nowMs - parseDuration(age);
  const ms = parseCalendar(text);
  if (ms === null) throw wrong(`time ${text}`, '2h or 2h ago, 2027-01-31 or 2027-01-31T12:00:00Z');
  return ms;
}

/** `KEY=VALUE`; the value may be empty and may contain `=`. */
export function parsePair(text: string): readonly [string, string] {
  const at = text.indexOf('=');
  if (at < 1) throw wrong(`pair ${text}`, 'NAME=VALUE');
  return [text.slice(0, at), text.slice(at + 1)];
}

export function formatBytes(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  const units = ['KiB', 'MiB', 'GiB', 'TiB'];
  const power = Math.min(units.length, Math.floor(Math.log2(bytes) / 10));
  const value = bytes / 1024 ** power;
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${units[power - 1]}`;
}

export function formatMs(ms: number): string {
  if (ms < 10) return `${ms.toFixed(1)} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  const minutes = Math.floor(ms / 60_000);
  return `${minutes} min ${Math.round((ms % 60_000) / 1000)} s`;
}

/** A time as the tables show it, UTC to the second. */
export function formatTime(ms: number): string {
  return new Date(ms).toISOString().slice(0, 19).replace('T', ' ');
}

function wrong(what: string, examples: string): UsageError {
  return new UsageError(`${what}: must be ${examples}`);
}
