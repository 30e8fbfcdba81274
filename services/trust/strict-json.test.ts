import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { JSON_BOUNDS, JSON_CASES } from './attacks/json.ts';
import { parseStrictJson } from './index.ts';

describe('strict JSON', () => {
  for (const [text, expected] of JSON_CASES) {
    test(`${JSON.stringify(text)} ${expected === undefined ? 'is refused' : 'is read'}`, () => {
      const read = parseStrictJson(Buffer.from(text), JSON_BOUNDS);
      assert.equal(JSON.stringify(read.ok ? read.value : undefined), JSON.stringify(expected));
    });
  }

  test('bytes that are not UTF-8 are refused', () => {
    assert.ok(!parseStrictJson(Buffer.from([0x22, 0xc3, 0x28, 0x22]), JSON_BOUNDS).ok);
  });

  test('what it reads is what JSON.parse reads', () => {
    const text = JSON.stringify({ a: [1, 'zwei', null, { b: true }], 'ü\n': -1 });
    const read = parseStrictJson(Buffer.from(text), { maxBytes: 1000, maxDepth: 9, maxValues: 99 });
    assert.equal(JSON.stringify(read.ok && read.value), text);
  });
});
