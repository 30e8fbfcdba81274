import assert from 'node:assert/strict';
import { test } from 'node:test';
import { kindOfSubject, WriteWatch } from './write-watch.ts';

test('a write that fails is a trouble until one of its kind comes through, or nobody tries it any more', () => {
  let nowMs = 0;
  const watch = new WriteWatch(() => nowMs);
  watch.failed('work', 'TIMEOUT');
  watch.failed('KV jobs', 'TIMEOUT');
  nowMs = 5_000;
  watch.failed('work', 'no space left on device');
  assert.equal(watch.troubles.length, 2);
  assert.match(watch.troubles[0] ?? '', /^work is not stored, for 5 s \(no space left on device\)/);
  watch.cameThrough('KV jobs');
  assert.equal(watch.troubles.length, 1);
  nowMs = 200_000;
  assert.deepEqual(watch.troubles, []);
});

test('events are told apart by their kind, not by their job', () => {
  assert.equal(kindOfSubject('job.verified.acme.x'), 'job.verified');
  assert.equal(kindOfSubject('work.bash.cpu.acme.x'), 'work');
});
