/**
 * A walk over an Avro body before it is decoded. The decoder trusts the counts that it reads: an array that claims
 * 2^50 items would keep it busy for ever, and a map key `__proto__` would reach JavaScript's prototypes. Bodies come
 * from strangers, so every count, length, index and number is checked against the bytes that are really there.
 */
import { isUtf8 } from 'node:buffer';
import { PoisonError } from './errors.ts';

export type AvroSchema = string | readonly AvroSchema[] | AvroComplex;
export interface AvroComplex {
  readonly type: AvroSchema;
  readonly name?: string;
  readonly namespace?: string;
  readonly fields?: readonly { readonly name: string; readonly type: AvroSchema }[];
  readonly symbols?: readonly string[];
  readonly items?: AvroSchema;
  readonly values?: AvroSchema;
}

const maxDepth = 32;
const forbiddenKeys = new Set(['__proto__']);
const utf8 = new TextDecoder();

/** Throws PoisonError('UNDECODABLE') unless `body` is exactly one value of `schema`. */
export function assertAvroBody(schema: AvroSchema, body: Uint8Array): void {
  const walk = new Walk(body, namedTypes(schema));
  walk.value(schema, '', 0);
  if (walk.position !== body.length) walk.fail('', `${body.length - walk.position} bytes after the end`);
}

type NamedTypes = ReadonlyMap<string, AvroComplex>;
const knownNames = new WeakMap<object, NamedTypes>();

/** Every record and enum of a schema by its name; it may be defined in a branch that a body does not take. */
function namedTypes(schema: AvroSchema): NamedTypes {
  if (typeof schema === 'string') return new Map();
  const known = knownNames.get(schema);
  if (known !== undefined) return known;
  const names = new Map<string, AvroComplex>();
  collectNames(schema, names);
  knownNames.set(schema, names);
  return names;
}

function collectNames(schema: AvroSchema, names: Map<string, AvroComplex>): void {
  if (typeof schema === 'string') return;
  if (isUnion(schema)) {
    for (const branch of schema) collectNames(branch, names);
    return;
  }
  if (schema.name !== undefined) names.set(schema.name, schema);
  const inner = [
    schema.type,
    schema.items,
    schema.values,
    ...(schema.fields ?? []).map((field) => field.type),
  ];
  for (const part of inner) if (part !== undefined) collectNames(part, names);
}

class Walk {
  position = 0;
  readonly #body: Uint8Array;
  readonly #named: NamedTypes;

  constructor(body: Uint8Array, named: NamedTypes) {
    this.#body = body;
    this.#named = named;
  }

  fail(path: string, what: string): never {
    throw new PoisonError(
      'UNDECODABLE',
      `Avro body at ${path || 'its root'}, byte ${this.position}: ${what}`,
    );
  }

  value(schema: AvroSchema, path: string, depth: number): void {
    if (depth > maxDepth) this.fail(path, 'nested too deeply');
    if (typeof schema === 'string') this.#primitiveOrName(schema, path, depth);
    else if (isUnion(schema)) this.value(this.#branch(schema, path), path, depth + 1);
    else this.#complex(schema, path, depth);
  }

  #branch(union: readonly AvroSchema[], path: string): AvroSchema {
    const index = this.#long(path);
    return union[index] ?? this.fail(path, `union branch ${index} does not exist`);
  }

  #complex(schema: AvroComplex, path: string, depth: number): void {
    switch (schema.type) {
      case 'record':
        for (const field of schema.fields ?? []) this.value(field.type, `${path}.${field.name}`, depth + 1);
        return;
      case 'enum': {
        const index = this.#long(path);
        if (schema.symbols?.[index] === undefined) this.fail(path, `enum index ${index} does not exist`);
        return;
      }
      case 'array':
        this.#blocks(path, () => this.value(schema.items ?? 'null', `${path}[]`, depth + 1));
        return;
      case 'map':
        this.#blocks(path, () => {
          this.#key(path);
          this.value(schema.values ?? 'null', `${path}{}`, depth + 1);
        });
        return;
      default:
        this.value(schema.type, path, depth + 1);
    }
  }

  /** Items take at least one byte each in our schemas, so no honest count exceeds the bytes that are left. */
  #blocks(path: string, item: () => void): void {
    for (;;) {
      let count = this.#long(path);
      if (count === 0) return;
      if (count < 0) {
        count = -count;
        this.#long(path);
      }
      if (count > this.#body.length - this.position) this.fail(path, `claims ${count} items`);
      for (let i = 0; i < count; i++) item();
    }
  }

  #key(path: string): void {
    const key = utf8.decode(this.#string(path));
    if (forbiddenKeys.has(key)) this.fail(path, `map key ${JSON.stringify(key)} is not allowed`);
  }

  #primitiveOrName(schema: string, path: string, depth: number): void {
    switch (schema) {
      case 'null':
        return;
      case 'boolean':
        if ((this.#bytes(1, path)[0] ?? 2) > 1) this.fail(path, 'boolean is neither 0 nor 1');
        return;
      case 'int': {
        const value = this.#long(path);
        if (value < -(2 ** 31) || value >= 2 ** 31) this.fail(path, 'int exceeds 32 bits');
        return;
      }
      case 'long':
        this.#long(path);
        return;
      case 'double':
        this.#bytes(8, path);
        return;
      case 'string':
        this.#string(path);
        return;
      case 'bytes':
        this.#bytes(this.#long(path), path);
        return;
      default:
        this.value(this.#named.get(schema) ?? this.fail(path, `unknown type ${schema}`), path, depth + 1);
    }
  }

  #string(path: string): Uint8Array {
    const bytes = this.#bytes(this.#long(path), path);
    return isUtf8(bytes) ? bytes : this.fail(path, 'string is not UTF-8');
  }

  #bytes(length: number, path: string): Uint8Array {
    if (length < 0 || length > this.#body.length - this.position) this.fail(path, `claims ${length} bytes`);
    const bytes = this.#body.subarray(this.position, this.position + length);
    this.position += length;
    return bytes;
  }

  /** A zig-zag varint of at most ten bytes that a JavaScript number holds exactly. */
  #long(path: string): number {
    // Seven bytes are 49 bits, which a number holds exactly at each step. Nearly all are that short.
    let value = 0;
    for (let index = 0; index < 7; index++) {
      const byte = this.#body[this.position + index];
      if (byte === undefined) break;
      value += (byte & 0x7f) * 2 ** (7 * index);
      if (byte < 0x80) {
        this.position += index + 1;
        return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
      }
    }
    return this.#longOfTen(path);
  }

  #longOfTen(path: string): number {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.#bytes(1, path)[0] ?? 0;
      value |= BigInt(byte & 0x7f) << shift;
      if ((byte & 0x80) === 0) return this.#safe((value >> 1n) ^ -(value & 1n), path);
    }
    return this.fail(path, 'number is longer than ten bytes');
  }

  #safe(value: bigint, path: string): number {
    const number = Number(value);
    if (!Number.isSafeInteger(number)) this.fail(path, `${value} is beyond 2^53-1`);
    return number;
  }
}

function isUnion(schema: AvroSchema): schema is readonly AvroSchema[] {
  return Array.isArray(schema);
}
