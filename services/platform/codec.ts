/**
 * Avro single-object encoding: C3 01, the schema's fingerprint (8 bytes, little-endian), the body.
 * The only file that knows `avsc`.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import avro from 'avsc';
import type { EventName, Events } from '../../schemas/generated/events.ts';
import { eventNames } from '../../schemas/generated/events.ts';
import type { AvroSchema } from './avro-bounds.ts';
import { assertAvroBody } from './avro-bounds.ts';
import { PoisonError } from './errors.ts';
import { crc64Avro, fingerprintKey, singleObjectHeader } from './fingerprint.ts';

export type * from '../../schemas/generated/events.ts';

/** A decoded event with its name. */
export type AnyEvent = { [N in EventName]: { readonly name: N; readonly value: Events[N] } }[EventName];

/** A schema that events are written with, or were. */
interface Version {
  readonly name: EventName;
  readonly schema: AvroSchema;
  readonly key: string;
  readonly text: string;
  /** The value as the present schema has it: what is newer has its default. */
  readonly read: (body: Buffer) => unknown;
}

interface Codec extends Version {
  readonly type: avro.Type;
  readonly header: Uint8Array;
}

const headerLength = 10;
const schemaFolder = join(import.meta.dirname, '../../schemas');
const codecs = new Map(eventNames.map((name) => [name, loadCodec(name)]));
const byKey = new Map<string, Version>([...codecs.values()].map((codec) => [codec.key, codec]));
for (const version of loadOldVersions()) byKey.set(version.key, version);

/** Parsing Canonical Form of a schema, as the Avro specification defines it. */
export function canonicalForm(schema: unknown): string {
  return JSON.stringify(avro.Type.forSchema(schema as avro.Schema, { noAnonymousTypes: false }).schema());
}

/** CRC-64-AVRO of a schema's canonical form. */
export function schemaFingerprint(schema: unknown): bigint {
  return crc64Avro(Buffer.from(canonicalForm(schema)));
}

function loadCodec(name: EventName): Codec {
  const text = readFileSync(join(schemaFolder, `${name}.avsc`), 'utf8');
  const schema = JSON.parse(text) as AvroSchema;
  const type = avro.Type.forSchema(schema as avro.Schema);
  const fingerprint = schemaFingerprint(schema);
  const header = singleObjectHeader(fingerprint);
  const read = (body: Buffer): unknown => type.fromBuffer(body);
  return { name, type, schema, header, key: fingerprintKey(fingerprint), text, read };
}

/** Those that are not the present ones. A version of an event that there is no more is left out. */
function loadOldVersions(): Version[] {
  const folder = join(schemaFolder, 'versions');
  const files = existsSync(folder) ? readdirSync(folder).filter((file) => file.endsWith('.avsc')) : [];
  return files.flatMap((file) => {
    const [name = '', key = ''] = file.split('.');
    const current = codecs.get(name as EventName);
    return current === undefined || byKey.has(key)
      ? []
      : [oldVersion(current.name, readFileSync(join(folder, file), 'utf8'))];
  });
}

/** How events are read that were written with another schema, of this text. Throws where they cannot be. */
export function oldVersion(name: EventName, text: string): Version {
  const { type } = codecOf(name);
  const schema = JSON.parse(text) as AvroSchema;
  const resolver = type.createResolver(avro.Type.forSchema(schema as avro.Schema));
  const key = fingerprintKey(schemaFingerprint(schema));
  return { name, schema, key, text, read: (body) => type.fromBuffer(body, resolver) };
}

function codecOf(name: EventName): Codec {
  const codec = codecs.get(name);
  if (codec === undefined) throw new Error(`no schema for ${name}`);
  return codec;
}

/** Bytes of an event. Throws a plain Error, a bug of the caller, when the value does not fit the schema. */
export function encode<N extends EventName>(name: N, value: Events[N]): Uint8Array {
  const codec = codecOf(name);
  const faults: string[] = [];
  const plain = buffers(value);
  codec.type.isValid(plain, {
    errorHook: (path: string[], bad: unknown) => void faults.push(`${path.join('.')} is ${String(bad)}`),
  });
  if (faults.length > 0) throw new Error(`${name} does not fit its schema: ${faults.join('; ')}`);
  return Buffer.concat([codec.header, codec.type.toBuffer(plain)]);
}

/** Decodes an event of any known schema, old ones too. Throws PoisonError UNKNOWN_SCHEMA, UNDECODABLE or TOO_LARGE. */
export function decode(bytes: Uint8Array, maxBytes = 1 << 20): AnyEvent {
  if (bytes.length > maxBytes)
    throw new PoisonError('TOO_LARGE', `${bytes.length} bytes, at most ${maxBytes}`);
  if (bytes.length < headerLength || bytes[0] !== 0xc3 || bytes[1] !== 0x01)
    throw new PoisonError(
      'UNDECODABLE',
      'not Avro single-object encoding (it starts with C3 01 and a fingerprint)',
    );
  const key = Buffer.from(bytes.subarray(2, headerLength)).toString('hex');
  const version = byKey.get(key);
  if (version === undefined)
    throw new PoisonError(unknownSchema, `no schema here has the fingerprint ${key}`);
  const body = Buffer.from(bytes.buffer, bytes.byteOffset + headerLength, bytes.length - headerLength);
  assertAvroBody(version.schema, body);
  return { name: version.name, value: version.read(body) } as AnyEvent;
}

/** Decodes an event that must be `name`. Throws PoisonError as `decode`, and WRONG_EVENT for another event. */
export function decodeAs<N extends EventName>(name: N, bytes: Uint8Array, maxBytes?: number): Events[N] {
  const event = decode(bytes, maxBytes);
  if (event.name !== name) throw new PoisonError('WRONG_EVENT', `a ${event.name} where a ${name} belongs`);
  return event.value as Events[N];
}

/** Reason of the dead letters whose schema nobody knows. */
export const unknownSchema = 'UNKNOWN_SCHEMA';

/** Key and text of every schema, old ones too, for the KV bucket `schemas`. */
export function allSchemas(): { name: EventName; key: string; text: string }[] {
  return [...byKey.values()].map(({ name, key, text }) => ({ name, key, text }));
}

/** The schemas that events are written with, as their files have them. */
export function schemaFiles(): { name: EventName; text: string }[] {
  return [...codecs.values()].map(({ name, text }) => ({ name, text }));
}

/** avsc takes Buffers only; ours are any Uint8Array. */
function buffers(value: unknown): unknown {
  if (Buffer.isBuffer(value)) return value;
  if (value instanceof Uint8Array) return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  if (Array.isArray(value)) return value.map(buffers);
  if (value !== null && typeof value === 'object')
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, buffers(inner)]));
  return value;
}
