import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { Ajv } from 'ajv';
import { parse } from 'yaml';
import { streams } from '../services/platform/topology.ts';

interface Document {
  readonly channels: Readonly<Record<string, { readonly address: string | null }>>;
  readonly operations: Readonly<Record<string, { readonly channel: { readonly $ref: string } }>>;
}

const text = readFileSync(join(import.meta.dirname, 'asyncapi.yaml'), 'utf8');
const document = parse(text) as Document;

test('the document is AsyncAPI 3.0, as its own schema has it', () => {
  const schema = createRequire(import.meta.url)('@asyncapi/specs/schemas/3.0.0.json') as object;
  // It brings the draft that it is written in itself; formats are of links and mail addresses.
  const validate = new Ajv({
    meta: false,
    validateSchema: false,
    strict: false,
    validateFormats: false,
  }).compile(schema);
  assert.equal(validate(document), true, JSON.stringify(validate.errors?.slice(0, 5), null, 1));
});

test('every reference leads somewhere', () => {
  for (const [, target = ''] of text.matchAll(/\$ref: "?#\/([^"\s]+)/g)) {
    const found = target
      .split('/')
      .reduce<unknown>((at, step) => (at as Record<string, unknown> | undefined)?.[step], document);
    assert.notEqual(found, undefined, target);
  }
  for (const [, file = ''] of text.matchAll(/\$ref: \.\/(\S+)/g))
    assert.ok(readFileSync(join(import.meta.dirname, file)).length > 0);
});

describe('every subject of a stream has a channel', () => {
  const addresses = Object.values(document.channels).map(({ address }) => address ?? '');
  for (const filter of streams.flatMap(({ subjects }) => subjects)) {
    const start = filter.replace('>', '');
    test(filter, () => assert.ok(addresses.some((address) => address.startsWith(start))));
  }
});
