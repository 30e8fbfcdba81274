/**
 * Writes what is made from the `.avsc` files: the TypeScript types of every event, and the AsyncAPI document.
 *
 *   npm run generate            rewrite them, and add new versions (versions.ts)
 *   npm run generate -- --check fail if they are not what the schemas say, or versions do not fit together (CI)
 *
 * Each `.avsc` is complete by itself, so that a client in any language can use one file alone. A named type that
 * several events share must therefore be written in each of them, and must be the same everywhere: checked here.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { asyncApi } from './asyncapi.ts';
import { addVersions, versionFaults } from './versions.ts';

type Schema = string | Schema[] | Complex;
interface Complex {
  type: Schema;
  name?: string;
  doc?: string;
  logicalType?: string;
  fields?: Field[];
  symbols?: string[];
  items?: Schema;
  values?: Schema;
}
interface Field {
  name: string;
  type: Schema;
  doc?: string;
  default?: unknown;
}

const here = import.meta.dirname;
const target = join(here, 'generated', 'events.ts');

const primitives: Record<string, string> = {
  null: 'null',
  boolean: 'boolean',
  int: 'number',
  long: 'number',
  double: 'number',
  string: 'string',
  bytes: 'Uint8Array',
};

/** Named types in the order in which they are first met. */
class TypeTable {
  readonly declarations = new Map<string, string>();

  reference(schema: Schema): string {
    if (typeof schema === 'string') return primitives[schema] ?? schema;
    if (Array.isArray(schema)) return schema.map((s) => this.reference(s)).join(' | ');
    if (schema.type === 'record' || schema.type === 'enum') return this.named(schema);
    if (schema.type === 'array') return `readonly ${wrapUnion(this.reference(schema.items ?? 'null'))}[]`;
    if (schema.type === 'map') return `Readonly<Record<string, ${this.reference(schema.values ?? 'null')}>>`;
    if (schema.logicalType === 'timestamp-micros') return 'Micros';
    return this.reference(schema.type);
  }

  private named(schema: Complex): string {
    const name = schema.name ?? '';
    const text = schema.type === 'enum' ? enumText(schema) : this.recordText(schema);
    const known = this.declarations.get(name);
    if (known !== undefined && known !== text)
      throw new Error(`${name} is not the same type in every .avsc file`);
    this.declarations.set(name, text);
    return name;
  }

  private recordText(schema: Complex): string {
    const fields = (schema.fields ?? []).map(
      (f) => `${doc(f.doc, '  ')}  readonly ${f.name}: ${this.reference(f.type)};`,
    );
    return `${doc(schema.doc, '')}export interface ${schema.name} {\n${fields.join('\n')}\n}`;
  }
}

function enumText(schema: Complex): string {
  return `${doc(schema.doc, '')}export type ${schema.name} = ${(schema.symbols ?? []).map((s) => `'${s}'`).join(' | ')};`;
}

function wrapUnion(text: string): string {
  return text.includes('|') ? `(${text})` : text;
}

function doc(text: string | undefined, indent: string): string {
  return text === undefined ? '' : `${indent}/** ${text} */\n`;
}

function generate(): string {
  const table = new TypeTable();
  const files = readdirSync(here)
    .filter((f) => f.endsWith('.avsc'))
    .sort();
  const names = files.map((file) => {
    const schema = JSON.parse(readFileSync(join(here, file), 'utf8')) as Complex;
    if (`${schema.name}.avsc` !== file)
      throw new Error(`${file} declares ${schema.name}: file and type names must agree`);
    return table.reference(schema);
  });
  const header =
    '// Generated from schemas/*.avsc by `npm run generate`. Do not edit.\n\n/** Microseconds since 1970-01-01T00:00:00Z (Avro timestamp-micros). */\nexport type Micros = number;';
  const byName = `/** Every event and page by its name. */\nexport interface Events {\n${names.map((n) => `  readonly ${n}: ${n};`).join('\n')}\n}`;
  const list = `export const eventNames = [\n${names.map((n) => `  '${n}',`).join('\n')}\n] as const;`;
  return `${[header, ...table.declarations.values(), byName, list].join('\n\n')}\n\nexport type EventName = keyof Events;\n`;
}

const { version } = JSON.parse(readFileSync(join(here, '../package.json'), 'utf8')) as { version: string };
const generated: readonly [path: string, text: string][] = [
  [target, generate()],
  [join(here, 'asyncapi.yaml'), asyncApi(version)],
];
if (process.argv.includes('--check')) {
  const stale = generated.filter(([path, text]) => !existsSync(path) || readFileSync(path, 'utf8') !== text);
  const faults = [
    ...stale.map(
      ([path]) =>
        `${relative(process.cwd(), path)} is not what the schemas say: run \`npm run generate\` and commit it`,
    ),
    ...versionFaults(),
  ];
  for (const fault of faults) console.error(fault);
  if (faults.length > 0) process.exit(1);
} else {
  for (const [path, text] of generated) writeFileSync(path, text);
  addVersions();
}
