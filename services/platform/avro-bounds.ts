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
  walk.value(schema, 0);
  if (walk.position !== body.length) walk.fail(`${body.length - walk.position} bytes after the end`);
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
  /** Where the walk is, for the message of a failure. */
  readonly #path: string[] = [];

  constructor(body: Uint8Array, named: NamedTypes) {
    this.#body = body;
    this.#named = named;
  }

  fail(what: string): never {
    const path = this.#path.map((part) => (/^\w/.test(part) ? `.${part}` : part)).join('') || 'its root';
    throw new PoisonError('UNDECODABLE', `Avro body at ${path}, byte ${this.position}: ${what}`);
  }

  value(schema: AvroSchema, depth: number): void {
    if (depth > maxDepth) this.fail('nested too deeply');
    if (typeof schema === 'string') this.#primitiveOrName(schema, depth);
    else if (isUnion(schema)) this.value(this.#branch(schema), depth + 1);
    else this.#complex(schema, depth);
  }

  #branch(union: readonly AvroSchema[]): AvroSchema {
    const index = this.#long();
    return union[index] ?? this.fail(`union branch ${index} does not exist`);
  }

  #complex(schema: AvroComplex, depth: number): void {
    switch (schema.type) {
      case 'record':
        for (const field of schema.fields ?? []) this.#part(field.name, field.type, depth);
        return;
      case 'enum': {
        const index = this.#long();
        if (schema.symbols?.[index] === undefined) this.fail(`enum index ${index} does not exist`);
        return;
      }
      case 'array':
        this.#blocks(() => this.#part('[]', schema.items ?? 'null', depth));
        return;
      case 'map':
        this.#blocks(() => {
          this.#key();
          this.#part('{}', schema.values ?? 'null', depth);
        });
        return;
      default:
        this.value(schema.type, depth + 1);
    }
  }

  #part(name: string, schema: AvroSchema, depth: number): void {
    this.#path.push(name);
    this.value(schema, depth + 1);
    this.#path.pop();
  }

  /** Items take at least one byte each in our schemas, so no honest count exceeds the bytes that are left. */
  #blocks(item: () => void): void {
    for (;;) {
      let count = this.#long();
      if (count === 0) return;
      if (count < 0) {
        count = -count;
        this.#long();
      }
      if (count > this.#body.length - this.position) this.fail(`claims ${count} items`);
      for (let i = 0; i < count; i++) item();
    }
  }

  #key(): void {
    const start = this.#string();
    const key = utf8.decode(this.#body.subarray(start, this.position));
    if (forbiddenKeys.has(key)) this.fail(`map key ${JSON.stringify(key)} is not allowed`);
  }

  #primitiveOrName(schema: string, depth: number): void {
    switch (schema) {
      case 'null':
        return;
      case 'boolean':
        if ((this.#body[this.#skip(1)] ?? 2) > 1) this.fail('boolean is neither 0 nor 1');
        return;
      case 'int': {
        const value = this.#long();
        if (value < -(2 ** 31) || value >= 2 ** 31) this.fail('int exceeds 32 bits');
        return;
      }
      case 'long':
        this.#long();
        return;
      case 'double':
        this.#skip(8);
        return;
      case 'string':
        this.#string();
        return;
      case 'bytes':
        this.#skip(this.#long());
        return;
      default:
        this.value(this.#named.get(schema) ?? this.fail(`unknown type ${schema}`), depth + 1);
    }
  }

  /** Returns where it begins; it ends where the walk is then. */
  #string(): number {
    const start = this.#skip(this.#long());
    for (let at = start; at < this.position; at++)
      if ((this.#body[at] ?? 0) >= 0x80) {
        // Nearly all is ASCII, and a view for each string would cost more than to look at it.
        if (!isUtf8(this.#body.subarray(start, this.position))) this.fail('string is not UTF-8');
        break;
      }
    return start;
  }

  /** Returns where the bytes begin. */
  #skip(length: number): number {
    const start = this.position;
    if (length < 0 || length > this.#body.length - start) this.fail(`claims ${length} bytes`);
    this.position = start + length;
    return start;
  }

  /** A zig-zag varint of at most ten bytes that a JavaScript number holds exactly. */
  #long(): number {
    // Seven bytes are 49 bits, which a number holds exactly at each step. Nearly all are that short, times one byte longer.
    let value = 0;
    for (let index = 0; index < 7; index++) {
      const byte = this.#body[this.position + index];
      if (byte === undefined) return this.#longOfTen();
      value += (byte & 0x7f) * 2 ** (7 * index);
      if (byte < 0x80) {
        this.position += index + 1;
        return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
      }
    }
    const eighth = this.#body[this.position + 7];
    // Of a positive number that is exact: what is left after halving has 52 bits.
    if (eighth === undefined || eighth >= 0x10 || value % 2 === 1) return this.#longOfTen();
    this.position += 8;
    return eighth * 2 ** 48 + value / 2;
  }

  #longOfTen(): number {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.#body[this.#skip(1)] ?? 0;
      value |= BigInt(byte & 0x7f) << shift;
      if ((byte & 0x80) === 0) return this.#safe((value >> 1n) ^ -(value & 1n));
    }
    return this.fail('number is longer than ten bytes');
  }

  #safe(value: bigint): number {
    const number = Number(value);
    if (!Number.isSafeInteger(number)) this.fail(`${value} is beyond 2^53-1`);
    return number;
  }
}

function isUnion(schema: AvroSchema): schema is readonly AvroSchema[] {
  return Array.isArray(schema);
}
