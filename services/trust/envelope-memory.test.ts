import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ALICE, BOB, envelopeFor, MALLORY, plugin, store } from './fixture.ts';
import { createEnvelopeMemory } from './index.ts';

const envelope = envelopeFor(plugin());
const others = ['2.0', '3.0', '4.0'].map((version) => envelopeFor(plugin({ version })));

describe('the memory of envelopes', () => {
  test('gives the same answer again, without the work', () => {
    const memory = createEnvelopeMemory();
    const first = memory.authenticate(envelope, store());
    assert.equal(memory.authenticate(Uint8Array.from(envelope), store()), first);
  });

  test('knows an envelope under one trust store only', () => {
    const memory = createEnvelopeMemory();
    assert.ok(memory.authenticate(envelope, store()).ok);
    const revoked = memory.authenticate(envelope, store({ revokedKeys: [ALICE.keyId] }));
    assert.ok(!revoked.ok && revoked.reason === 'REVOKED');
  });

  test('forgets what was not used for longest', () => {
    const memory = createEnvelopeMemory(2);
    const [second = envelope, third = envelope] = others;
    const first = memory.authenticate(envelope, store());
    const forgotten = memory.authenticate(second, store());
    memory.authenticate(envelope, store());
    memory.authenticate(third, store());
    assert.equal(memory.authenticate(envelope, store()), first);
    assert.notEqual(memory.authenticate(second, store()), forgotten);
  });

  test('keeps no refusals, with which strangers could push everything else out', () => {
    const memory = createEnvelopeMemory(1);
    const first = memory.authenticate(envelope, store());
    assert.ok(!memory.authenticate(envelopeFor(plugin(), [MALLORY]), store()).ok);
    assert.equal(memory.authenticate(envelope, store()), first);
  });

  test('takes less than 50 µs for a decision that it remembers', () => {
    const memory = createEnvelopeMemory();
    const trustStore = store();
    const signed = envelopeFor(plugin(), [ALICE, BOB]);
    const times = Array.from({ length: 2000 }, () => {
      const started = performance.now();
      memory.authenticate(signed, trustStore);
      return (performance.now() - started) * 1000;
    }).sort((one, other) => one - other);
    const median = times[times.length / 2] ?? Number.POSITIVE_INFINITY;
    assert.ok(median < 50, `the median was ${median} µs`);
  });
});
