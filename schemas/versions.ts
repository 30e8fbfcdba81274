/**
 * Every version of every schema that was ever written with, so that events of any age can be read; and golden bytes of each,
 * so that what is on the wire never changes by accident.
 *
 *   versions/<Event>.<fingerprint>.avsc    the schema as it was
 *   versions/<Event>.<fingerprint>.json    a value of it (Avro's JSON encoding), and its bytes in hex
 *
 * `npm run generate` adds what is missing and never touches what is there. Old and new must be able to read each other:
 * services of two versions run beside each other during an upgrade, and subscribers keep the schema that they know.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import avro from 'avsc';
import { schemaFiles, schemaFingerprint } from '../services/platform/codec.ts';
import { fingerprintKey, singleObjectHeader } from '../services/platform/fingerprint.ts';

export const versionsFolder = join(import.meta.dirname, 'versions');

export interface Golden {
  readonly value: unknown;
  readonly bytes: string;
}

interface Complex {
  readonly type: Schema;
  readonly name?: string;
  readonly logicalType?: string;
  readonly fields?: readonly Field[];
  readonly symbols?: readonly string[];
  readonly items?: Schema;
  readonly values?: Schema;
  readonly size?: number;
}
type Schema = string | readonly Schema[] | Complex;
interface Field {
  readonly name: string;
  readonly type: Schema;
  readonly default?: unknown;
}

/** Writes the version that each `.avsc` file is now, where it is not there yet. */
export function addVersions(): void {
  for (const { name, schema, text } of currentSchemas()) {
    const path = join(versionsFolder, `${name}.${keyOf(schema)}`);
    if (existsSync(`${path}.avsc`)) continue;
    writeFileSync(`${path}.avsc`, text);
    writeFileSync(`${path}.json`, `${JSON.stringify(golden(schema), null, 2)}\n`);
  }
}

/** What is wrong, a sentence each: a version that is missing, or one that cannot be read by another, or reads differently. */
export function versionFaults(): string[] {
  const versions = readVersions();
  // Its bytes are hashed, and proofs hold only while everybody makes the same bytes of a record.
  const leaves = versions.filter(({ name }) => name === 'AuditLeaf').slice(1);
  const changed = leaves.map(({ key }) => `AuditLeaf.${key}: what the Merkle tree hashes never changes`);
  const others = currentSchemas().flatMap(({ name, schema }) => {
    const key = keyOf(schema);
    if (!versions.some((version) => version.key === key))
      return [`schemas/versions has no ${name}.${key}: run \`npm run generate\` and commit it`];
    return versions
      .filter((version) => version.name === name)
      .flatMap((version) =>
        faultsBetween(version.schema, schema).map((fault) => `${name}.${version.key}: ${fault}`),
      );
  });
  return [...changed, ...others];
}

export function readVersions(): { name: string; key: string; schema: Schema; golden: Golden }[] {
  return readdirSync(versionsFolder)
    .filter((file) => file.endsWith('.avsc'))
    .map((file) => {
      const [name = '', key = ''] = file.split('.');
      const read = (extension: string) =>
        JSON.parse(readFileSync(join(versionsFolder, `${name}.${key}.${extension}`), 'utf8'));
      return { name, key, schema: read('avsc') as Schema, golden: read('json') as Golden };
    });
}

/** What keeps readers and writers of the two from understanding each other. */
export function faultsBetween(before: Schema, now: Schema): string[] {
  return [
    ...unreadable(before, now, 'what was written with it cannot be read any more'),
    ...unreadable(now, before, 'its readers cannot read what is written now'),
    ...differences(before, now),
  ];
}

function unreadable(writer: Schema, reader: Schema, what: string): string[] {
  try {
    typeOf(reader).createResolver(typeOf(writer));
    return [];
  } catch (error) {
    return [`${what} (${error instanceof Error ? error.message : String(error)})`];
  }
}

/** Fingerprints ignore defaults and logical types, and readers do not. A field that is gone takes its facts with it. */
function differences(before: Schema, now: Schema): string[] {
  const [oldNames, names] = [new Map(namesIn(before)), new Map(namesIn(now))];
  const walk = (beforeHere: Schema | undefined, here: Schema | undefined, path: string): string[] => {
    const [old, current] = [complexOf(beforeHere, oldNames), complexOf(here, names)];
    if (old === null || current === null) return [];
    if (old.logicalType !== current.logicalType) return [`${path} has another logical type`];
    const fields = (old.fields ?? []).flatMap((field) => {
      const place = path === '' ? field.name : `${path}.${field.name}`;
      const same = current.fields?.find(({ name }) => name === field.name);
      if (same === undefined) return [`${place} is gone`];
      if (field.default !== undefined && !isDeepStrictEqual(field.default, same.default))
        return [`${place} has another default`];
      return walk(field.type, same.type, place);
    });
    const inner = [
      [old.items, current.items],
      [old.values, current.values],
    ] as const;
    return [...fields, ...inner.flatMap(([one, other]) => walk(one, other, `${path}[]`))];
  };
  return walk(before, now, '');
}

/** What a schema is, by its name or as the branch beside null; null where it is nothing. */
function complexOf(schema: Schema | undefined, names: ReadonlyMap<string, Complex>): Complex | null {
  if (schema === undefined || schema === 'null') return null;
  if (typeof schema === 'string') return names.get(schema) ?? { type: schema };
  if (isUnion(schema))
    return complexOf(
      schema.find((part) => part !== 'null'),
      names,
    );
  return typeof schema.type === 'string' ? schema : complexOf(schema.type, names);
}

function namesIn(schema: Schema): [string, Complex][] {
  if (typeof schema === 'string') return [];
  if (isUnion(schema)) return schema.flatMap(namesIn);
  const parts = [schema.items, schema.values, ...(schema.fields ?? []).map(({ type }) => type)];
  const inner = typeof schema.type === 'string' ? [] : namesIn(schema.type);
  const own: [string, Complex][] = schema.name === undefined ? [] : [[schema.name, schema]];
  return [...own, ...inner, ...parts.flatMap((part) => (part === undefined ? [] : namesIn(part)))];
}

const isUnion = (schema: Schema): schema is readonly Schema[] => Array.isArray(schema);

/** A value with something in every field. */
function golden(schema: Schema): Golden {
  const type = typeOf(schema);
  const value = new Sample(schema).value(schema, 'event');
  const header = singleObjectHeader(schemaFingerprint(schema));
  return {
    value: JSON.parse(type.toString(value)),
    bytes: Buffer.concat([header, type.toBuffer(value)]).toString('hex'),
  };
}

class Sample {
  readonly #names: ReadonlyMap<string, Complex>;
  #number = 0;

  constructor(schema: Schema) {
    this.#names = new Map(namesIn(schema));
  }

  value(schema: Schema, name: string): unknown {
    if (isUnion(schema)) return this.value(schema.find((branch) => branch !== 'null') ?? 'null', name);
    if (typeof schema === 'string') return this.#named(schema, name);
    switch (schema.type) {
      case 'record':
        return Object.fromEntries((schema.fields ?? []).map((f) => [f.name, this.value(f.type, f.name)]));
      case 'enum':
        return schema.symbols?.at(-1);
      case 'array':
        return [this.value(schema.items ?? 'null', name)];
      case 'map':
        return { [name]: this.value(schema.values ?? 'null', name) };
      case 'fixed':
        return Buffer.alloc(schema.size ?? 0, ++this.#number);
      default:
        return this.value(schema.type, name);
    }
  }

  #named(type: string, name: string): unknown {
    const known = this.#names.get(type);
    if (known !== undefined) return this.value(known, name);
    this.#number++;
    const primitives: Record<string, unknown> = {
      boolean: true,
      bytes: Buffer.from([this.#number, 0, 255]),
      string: `${name} ${this.#number} ü`,
      int: -this.#number,
      long: 2 ** 40 + this.#number,
      double: this.#number + 0.5,
    };
    if (!(type in primitives)) throw new Error(`no sample of the type ${type}`);
    return primitives[type];
  }
}

function currentSchemas(): { name: string; schema: Schema; text: string }[] {
  return schemaFiles().map(({ name, text }) => ({ name, text, schema: JSON.parse(text) as Schema }));
}

export const typeOf = (schema: Schema): avro.Type => avro.Type.forSchema(schema as unknown as avro.Schema);
const keyOf = (schema: Schema): string => fingerprintKey(schemaFingerprint(schema));
