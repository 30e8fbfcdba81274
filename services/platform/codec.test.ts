import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { readVersions, typeOf } from '../../schemas/versions.ts';
import { assertAvroBody } from './avro-bounds.ts';
import type { JobFinished } from './codec.ts';
import {
  allSchemas,
  canonicalForm,
  decode,
  decodeAs,
  encode,
  oldVersion,
  schemaFiles,
  schemaFingerprint,
} from './codec.ts';
import { PoisonError } from './errors.ts';

const cancel = {
  jobId: '019d0000-0000-7000-8000-000000000001',
  tenant: 'acme',
  requestedAt: 1_796_021_751_914_000,
  requestedBy: 'ada',
  reason: 'no longer needed – schön',
};

describe('fingerprints', () => {
  // From the Avro specification and its public test suite.
  const own = [
    { schema: '"null"', canonical: '"null"', fingerprint: '7195948357588979594' },
    { schema: '"int"', canonical: '"int"', fingerprint: '8247732601305521295' },
    {
      schema: '{"type":"record","name":"foo","namespace":"x.y","fields":[]}',
      canonical: '{"name":"x.y.foo","type":"record","fields":[]}',
      fingerprint: '5916914534497305771',
    },
  ];
  const shared = join(import.meta.dirname, '../../../shared/vectors/avro-fingerprints.json');
  const vectors = existsSync(shared)
    ? [...own, ...(JSON.parse(readFileSync(shared, 'utf8')) as typeof own)]
    : own;
  for (const { schema, canonical, fingerprint } of vectors)
    test(`CRC-64-AVRO of ${schema.slice(0, 60)}`, () => {
      assert.equal(canonicalForm(JSON.parse(schema)), canonical);
      assert.equal(BigInt.asIntN(64, schemaFingerprint(JSON.parse(schema))).toString(), fingerprint);
    });
});

describe('single-object encoding', () => {
  test('an event comes back as it went', () => {
    const bytes = encode('JobCancelRequested', cancel);
    assert.deepEqual([...bytes.subarray(0, 2)], [0xc3, 0x01]);
    assert.deepEqual({ ...decodeAs('JobCancelRequested', bytes) }, cancel);
  });

  test('the schema of each file has its own fingerprint', () => {
    const files = readdirSync(join(import.meta.dirname, '../../schemas')).filter((file) =>
      file.endsWith('.avsc'),
    );
    assert.deepEqual(
      schemaFiles()
        .map((schema) => `${schema.name}.avsc`)
        .sort(),
      files.sort(),
    );
    assert.equal(new Set(allSchemas().map((schema) => schema.key)).size, allSchemas().length);
  });

  test('a value that does not fit is a bug, named by its path', () => {
    assert.throws(
      () => encode('JobCancelRequested', { ...cancel, requestedAt: 'soon' as never }),
      /requestedAt is soon/,
    );
    assert.throws(() => encode('JobCancelRequested', { ...cancel, requestedAt: 2 ** 53 }), /requestedAt/);
  });
});

test('a type that is defined where a body has nothing is known where it has something', () => {
  const inner = { type: 'record', name: 'R', fields: [{ name: 'n', type: 'int' }] };
  const fields = [
    { name: 'a', type: { type: 'array', items: inner } },
    { name: 'b', type: { type: 'array', items: 'R' } },
  ];
  assertAvroBody({ type: 'record', name: 'T', fields } as never, Buffer.from('00020200', 'hex'));
});

test('an event of an older version has defaults where it says nothing', () => {
  const now = JSON.parse(schemaFiles().find(({ name }) => name === 'JobFinished')?.text ?? '');
  const golden = readVersions().find(({ name }) => name === 'JobFinished')?.golden;
  const value = { ...(golden?.value as object), signal: undefined };
  const older = { ...now, fields: now.fields.filter(({ name }: { name: string }) => name !== 'signal') };
  const bytes = typeOf(older).toBuffer(typeOf(older).fromString(JSON.stringify(value)));
  const read = oldVersion('JobFinished', JSON.stringify(older)).read(bytes) as JobFinished;
  assert.deepEqual([read.signal, read.tenant], [null, 'tenant 2 ü']);
});

describe('bytes of strangers are poison, never a wrong value, never a hang', () => {
  const good = encode('JobCancelRequested', cancel);
  const header = good.subarray(0, 10);
  const submitted = allSchemas().find((schema) => schema.name === 'JobSubmitted');
  const submittedHeader = Buffer.concat([
    Buffer.from([0xc3, 0x01]),
    Buffer.from(submitted?.key ?? '', 'hex'),
  ]);
  const cases: [string, Uint8Array, string][] = [
    ['nothing', new Uint8Array(), 'UNDECODABLE'],
    ['text', Buffer.from('{"jobId": 1}'), 'UNDECODABLE'],
    ['an unknown fingerprint', Buffer.from('c30100000000000000000102', 'hex'), 'UNKNOWN_SCHEMA'],
    ['only a header', header, 'UNDECODABLE'],
    ['a body that was cut', good.subarray(0, good.length - 1), 'UNDECODABLE'],
    ['a byte too many', Buffer.concat([good, Buffer.from([0])]), 'UNDECODABLE'],
    [
      'a string longer than the message',
      Buffer.concat([header, Buffer.from([0xfe, 0xff, 0xff, 0x7f])]),
      'UNDECODABLE',
    ],
    ['a negative length', Buffer.concat([header, Buffer.from([0x01])]), 'UNDECODABLE'],
    ['a number that never ends', Buffer.concat([header, Buffer.alloc(32, 0xff)]), 'UNDECODABLE'],
    ['a string that is not UTF-8', Buffer.concat([header, Buffer.from([4, 0xff, 0xfe])]), 'UNDECODABLE'],
    [
      'garbage under a good header',
      Buffer.concat([submittedHeader, Buffer.alloc(4096, 0x7f)]),
      'UNDECODABLE',
    ],
    ['more than is allowed', Buffer.alloc((1 << 20) + 1), 'TOO_LARGE'],
  ];
  for (const [what, bytes, code] of cases)
    test(what, () => {
      assert.throws(
        () => decode(bytes),
        (error: unknown) => error instanceof PoisonError && error.code === code,
      );
    });

  const bodies: [string, unknown, string, RegExp][] = [
    ['an array of 2^40 items', { type: 'array', items: 'long' }, '8080808080408001', /claims \d+ items/],
    ['a long beyond 2^53-1', 'long', '80808080808080808001', /beyond 2\^53-1/],
    ['an int of 40 bits', 'int', '808080808040', /exceeds 32 bits/],
    ['a map key __proto__', { type: 'map', values: 'int' }, '02125f5f70726f746f5f5f0200', /__proto__/],
    ['an enum index that does not exist', { type: 'enum', name: 'E', symbols: ['A'] }, '02', /enum index 1/],
    ['a union branch that does not exist', ['null', 'int'], '04', /union branch 2/],
    ['a boolean of 2', 'boolean', '02', /neither 0 nor 1/],
  ];
  for (const [what, schema, hex, message] of bodies)
    test(what, () => assert.throws(() => assertAvroBody(schema as never, Buffer.from(hex, 'hex')), message));

  test('every prefix and every single flipped byte of a good event either decodes or is poison', () => {
    for (let index = 0; index < good.length; index++) {
      for (const bytes of [good.subarray(0, index), flipped(good, index)]) {
        try {
          decode(bytes);
        } catch (error) {
          assert.ok(error instanceof PoisonError, String(error));
        }
      }
    }
  });
});

function flipped(bytes: Uint8Array, index: number): Uint8Array {
  const copy = Uint8Array.from(bytes);
  copy[index] = (copy[index] ?? 0) ^ 0xff;
  return copy;
}
