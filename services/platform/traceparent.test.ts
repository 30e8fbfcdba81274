import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { formatTraceparent, newTraceParent, parseTraceparent } from './traceparent.ts';

describe('trace context', () => {
  it('is read back as it was made', () => {
    const ids = newTraceParent();
    assert.deepEqual(parseTraceparent(formatTraceparent(ids)), ids);
  });

  const wrong = [
    '',
    'hello',
    `00-${'0'.repeat(32)}-${'1'.repeat(16)}-01`,
    `00-${'1'.repeat(32)}-${'0'.repeat(16)}-01`,
    `01-${'1'.repeat(32)}-${'1'.repeat(16)}-01`,
    `00-${'A'.repeat(32)}-${'1'.repeat(16)}-01`,
  ];
  for (const text of wrong)
    it(`${JSON.stringify(text)} is none`, () => assert.equal(parseTraceparent(text), null));
});
