import assert from 'node:assert/strict';
import { test } from 'node:test';
import { adviceFor, REJECT_REASONS } from './index.ts';
import { quote } from './reasons.ts';

test('each reason has one sentence that says what to do', () => {
  assert.equal(new Set(REJECT_REASONS).size, REJECT_REASONS.length);
  for (const reason of REJECT_REASONS) {
    assert.match(reason, /^[A-Z]+(_[A-Z]+)*$/);
    assert.match(adviceFor(reason), /^[A-Z].{30,}\.$/, reason);
  }
});

test('text of strangers cannot break out of a detail', () => {
  assert.equal(quote('a"b\n\u001b[31m\u202e'), '"a\\"b\\n\\u001b[31m\\u202e"');
  assert.equal(quote('x'.repeat(1000)).length, 83);
});
