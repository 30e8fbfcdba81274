// A JSON reader for signed and security-relevant documents. It exists because JSON.parse keeps the last of two equal
// keys, so that two readers of the same signed bytes can see different values. One pass both checks and builds the
// value; there is no second parser to disagree with.
//
// Stricter than JSON: whole numbers within 2^53-1 only, no duplicate keys, no lone surrogates, no byte-order mark,
// bounded size and depth. Objects have no prototype and `__proto__` is refused as a key.

import { accept, type Checked, quote, reject } from './reasons.ts';

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** `maxValues` counts everything between brackets and commas, so that few bytes cannot make much work either. */
export type JsonBounds = { readonly maxBytes: number; readonly maxDepth: number; readonly maxValues: number };

/** Thrown and caught inside this file only. */
class JsonFault extends Error {}

type Reader = { readonly text: string; readonly bounds: JsonBounds; at: number; values: number };

export function parseStrictJson(bytes: Uint8Array, bounds: JsonBounds): Checked<Json> {
  if (bytes.length > bounds.maxBytes) {
    return reject('MALFORMED', `${bytes.length} bytes of JSON, at most ${bounds.maxBytes} are read`);
  }
  try {
    const reader: Reader = { text: decodeUtf8(bytes), bounds, at: 0, values: 0 };
    const value = readValue(reader, 0);
    skipSpace(reader);
    if (reader.at < reader.text.length) fault(reader, 'more text after the value');
    return accept(value);
  } catch (error) {
    if (error instanceof JsonFault) return reject('MALFORMED', error.message);
    throw error;
  }
}

function decodeUtf8(bytes: Uint8Array): string {
  try {
    // ignoreBOM keeps the mark in the text, where it is refused as an unexpected character.
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new JsonFault('the JSON is not valid UTF-8');
  }
}

function fault(reader: Reader, problem: string): never {
  throw new JsonFault(`the JSON has ${problem} at character ${reader.at}`);
}

function skipSpace(reader: Reader): void {
  while (' \t\n\r'.includes(reader.text[reader.at] ?? 'end')) reader.at += 1;
}

function take(reader: Reader, expected: string): void {
  if (!reader.text.startsWith(expected, reader.at)) fault(reader, `no ${quote(expected)}`);
  reader.at += expected.length;
}

function takeIf(reader: Reader, expected: string): boolean {
  if (!reader.text.startsWith(expected, reader.at)) return false;
  reader.at += expected.length;
  return true;
}

function readValue(reader: Reader, depth: number): Json {
  const { maxDepth, maxValues } = reader.bounds;
  reader.values += 1;
  if (depth > maxDepth) fault(reader, `more than ${maxDepth} levels`);
  if (reader.values > maxValues) fault(reader, `more than ${maxValues} values`);
  skipSpace(reader);
  const first = reader.text[reader.at];
  if (first === '{') return readObject(reader, depth);
  if (first === '[') return readArray(reader, depth);
  if (first === '"') return readString(reader);
  if (takeIf(reader, 'true')) return true;
  if (takeIf(reader, 'false')) return false;
  if (takeIf(reader, 'null')) return null;
  return readInteger(reader);
}

function readObject(reader: Reader, depth: number): Json {
  const object: { [key: string]: Json } = Object.create(null);
  take(reader, '{');
  skipSpace(reader);
  if (takeIf(reader, '}')) return object;
  do {
    skipSpace(reader);
    const key = readString(reader);
    if (key === '__proto__') fault(reader, 'the forbidden key "__proto__"');
    if (Object.hasOwn(object, key)) fault(reader, `the key ${quote(key)} twice`);
    skipSpace(reader);
    take(reader, ':');
    object[key] = readValue(reader, depth + 1);
    skipSpace(reader);
  } while (takeIf(reader, ','));
  take(reader, '}');
  return object;
}

function readArray(reader: Reader, depth: number): Json {
  const array: Json[] = [];
  take(reader, '[');
  skipSpace(reader);
  if (takeIf(reader, ']')) return array;
  do {
    array.push(readValue(reader, depth + 1));
    skipSpace(reader);
  } while (takeIf(reader, ','));
  take(reader, ']');
  return array;
}

function readString(reader: Reader): string {
  const { text, at } = reader;
  if (text[at] !== '"') fault(reader, 'no string where one must be');
  let end = at + 1;
  while (text[end] !== '"') {
    if (text[end] === undefined) fault(reader, 'an unfinished string');
    end += text[end] === '\\' ? 2 : 1;
  }
  const value = decodeStringToken(text.slice(at, end + 1));
  if (value === null) fault(reader, 'a string that is not well-formed');
  reader.at = end + 1;
  return value;
}

/** The token holds one string and nothing else, so JSON.parse cannot read it in any other way. */
function decodeStringToken(token: string): string | null {
  try {
    const value: string = JSON.parse(token);
    return value.isWellFormed() ? value : null;
  } catch {
    return null;
  }
}

const INTEGER = /-?(?:0|[1-9][0-9]*)(?![0-9.eE])/y;

function readInteger(reader: Reader): number {
  INTEGER.lastIndex = reader.at;
  const token = INTEGER.exec(reader.text)?.[0];
  if (token === undefined) fault(reader, 'something that is neither a value nor a whole number');
  const value = Number(token);
  if (!Number.isSafeInteger(value)) fault(reader, 'a number beyond 2^53-1');
  reader.at += token.length;
  return value;
}
