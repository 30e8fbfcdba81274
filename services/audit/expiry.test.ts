/** What has become too old is removed, step by step, and nothing where nothing is to be. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually } from '../../test/with-nats.ts';
import { createLogger } from '../platform/log.ts';
import { Expiry } from './expiry.ts';

const dayMs = 86_400_000;
const clock = { nowMs: () => 100 * dayMs, monotonicMs: () => 0 };

/** Counts down what there is to remove, and notes up to when it was asked for. */
function store(payloads: number, spans: number) {
  const asked = { payloads: [] as number[], spans: [] as number[] };
  const take = (left: number, limit: number) => Math.min(left, limit);
  return {
    asked,
    left: () => [payloads, spans],
    erasePayloads: async (before: number, limit: number) => {
      asked.payloads.push(before / 1000 / dayMs);
      const taken = take(payloads, limit);
      payloads -= taken;
      return taken;
    },
    removeSpans: async (before: number, limit: number) => {
      asked.spans.push(before / 1000 / dayMs);
      const taken = take(spans, limit);
      spans -= taken;
      return taken;
    },
  };
}

async function runs(keep: { payloadDays: number | null; spanDays: number | null }, left: [number, number]) {
  const fake = store(1200, 3);
  const expiry = new Expiry({ store: fake, keep, clock, log: createLogger('test', 'fatal') });
  expiry.worker.wake();
  await eventually('it is done', () => JSON.stringify(fake.left()) === JSON.stringify(left));
  await expiry.worker.stop();
  return fake.asked;
}

test('payloads and spans, each by its own age, until none is left', async () => {
  const asked = await runs({ payloadDays: 30, spanDays: 7 }, [0, 0]);
  assert.deepEqual(asked.payloads, [70, 70, 70]);
  assert.equal(asked.spans[0], 93);
});

test('spans alone', async () => {
  const asked = await runs({ payloadDays: null, spanDays: 0.5 }, [1200, 0]);
  assert.deepEqual([asked.payloads, asked.spans[0]], [[], 99.5]);
});
