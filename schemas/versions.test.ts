import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { decode, encode } from '../services/platform/codec.ts';
import { faultsBetween, readVersions, typeOf, versionFaults } from './versions.ts';

describe('golden bytes of every version', () => {
  for (const { name, key, schema, golden } of readVersions()) {
    const bytes = Buffer.from(golden.bytes, 'hex');
    const body = bytes.subarray(10);
    test(`${name}.${key} is on the wire what it was`, () => {
      const type = typeOf(schema);
      const value = type.fromString(JSON.stringify(golden.value));
      assert.equal(bytes.subarray(2, 10).toString('hex'), key);
      assert.equal(type.toBuffer(value).toString('hex'), body.toString('hex'));
    });
    test(`${name}.${key} is read by the services`, () => {
      const event = decode(bytes);
      assert.equal(event.name, name);
      assertHas(event.value, typeOf(schema).fromBuffer(body), name);
    });
  }
});

/** Everything that `before` has is in `now`, which may have more. */
function assertHas(now: unknown, before: unknown, path: string): void {
  if (before === null || typeof before !== 'object' || before instanceof Uint8Array)
    assert.deepEqual(now, before, path);
  else
    for (const [key, value] of Object.entries(before))
      assertHas((now as Record<string, unknown>)[key], value, `${path}.${key}`);
}

test('every version of a schema can be read by every other', () => assert.deepEqual(versionFaults(), []));

test('what is written now has the version that is kept', () => {
  const keys = new Set(readVersions().map(({ key }) => key));
  const cancel = { jobId: 'j', tenant: 't', requestedAt: 1, requestedBy: 'a', reason: 'b' };
  const bytes = encode('JobCancelRequested', cancel);
  assert.ok(keys.has(Buffer.from(bytes.subarray(2, 10)).toString('hex')));
});

describe('a change that a reader would not survive is found', () => {
  const record = (...fields: object[]) => ({ type: 'record', name: 'R', fields }) as const;
  const id = { name: 'id', type: 'string' };
  const kind = (...symbols: string[]) => ({ name: 'kind', type: { type: 'enum', name: 'K', symbols } });
  const time = { type: 'long', logicalType: 'timestamp-micros' };
  const item = (type: unknown) => ({
    name: 'items',
    type: { type: 'array', items: { type: 'record', name: 'I', fields: [{ name: 'at', type }] } },
  });
  const cases: [what: string, before: object, now: object, fault: RegExp | null][] = [
    ['nothing', record(id), record(id), null],
    ['a comment', record(id), record({ ...id, doc: 'Chosen by the submitter.' }), null],
    ['a new field with a default', record(id), record(id, { name: 'n', type: 'int', default: 0 }), null],
    [
      'a new field without one',
      record(id),
      record(id, { name: 'n', type: 'int' }),
      /cannot be read any more/,
    ],
    ['a field that is gone', record(id, { name: 'n', type: 'int', default: 0 }), record(id), /n is gone/],
    ['a new name', record(id), record({ name: 'key', type: 'string' }), /cannot be read any more/],
    ['a new symbol', record(kind('a')), record(kind('a', 'b')), /its readers cannot read/],
    ['a symbol that is gone', record(kind('a', 'b')), record(kind('a')), /cannot be read any more/],
    [
      'a null where there was none',
      record({ name: 'n', type: 'long' }),
      record({ name: 'n', type: ['null', 'long'], default: null }),
      /its readers cannot read/,
    ],
    [
      'another default',
      record({ name: 'n', type: 'int', default: 0 }),
      record({ name: 'n', type: 'int', default: 1 }),
      /n has another default/,
    ],
    [
      'a time that is a number',
      record({ name: 'at', type: time }),
      record({ name: 'at', type: 'long' }),
      /logical type/,
    ],
    ['the same deep inside', record(item(time)), record(item('long')), /items\[\]\.at/],
  ];
  for (const [what, before, now, fault] of cases)
    test(what, () => {
      const found = faultsBetween(before as never, now as never).join('; ');
      if (fault === null) assert.equal(found, '');
      else assert.match(found, fault);
    });
});
