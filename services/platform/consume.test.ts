import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { TestNats } from '../../test/with-nats.ts';
import { eventually, startTestNats } from '../../test/with-nats.ts';
import { decodeAs } from './codec.ts';
import type { Loop } from './consume.ts';
import { consume } from './consume.ts';
import { deadLetterTo } from './dead-letter.ts';
import { OperationalError, PoisonError } from './errors.ts';
import { createLogger } from './log.ts';
import type { Delivery } from './nats/bus.ts';
import { consumers } from './topology.ts';

let nats: TestNats;
before(async () => {
  nats = await startTestNats();
});
after(() => nats.stop());

const job = { tenant: 'acme', jobId: '019d0000-0000-7000-8000-000000000001' };
const log = createLogger('test', 'fatal');

function start(handler: (delivery: Delivery) => Promise<void>, maxDeliveries = 20, slots = 4): Loop {
  const deadLetter = deadLetterTo(nats.bus, 'router', () => 1000);
  return consume({
    bus: nats.bus,
    consumer: consumers.router,
    slots,
    handler,
    maxDeliveries,
    deadLetter,
    log,
  });
}

async function publish(text: string): Promise<number> {
  const { sequence } = await nats.bus.publish(`job.verified.${job.tenant}.${job.jobId}`, Buffer.from(text));
  return sequence;
}

const settled = (sequence: number) => async () => (await nats.bus.ackFloor('JOBS', 'router')) >= sequence;

async function lastDeadLetter() {
  const { lastSequence } = await nats.bus.streamState('JOBS');
  const message = await nats.bus.messageAt('JOBS', lastSequence);
  assert.equal(message?.subject, `job.dead-lettered.${job.tenant}.${job.jobId}`);
  return decodeAs('JobDeadLettered', message?.data ?? new Uint8Array());
}

test('a handled message is acked, in order, and not delivered again', async () => {
  const seen: string[] = [];
  const loop = start(async (delivery) => void seen.push(Buffer.from(delivery.data).toString()), 20, 1);
  await publish('one');
  const last = await publish('two');
  await eventually('both acked', settled(last));
  await loop.stop();
  assert.deepEqual(seen, ['one', 'two']);
});

test('in batches, never more at one time than there are slots, and acked though nobody says so', async () => {
  let [atOnce, most, seen] = [0, 0, 0];
  const handler = async () => {
    most = Math.max(most, ++atOnce);
    seen++;
    await new Promise((done) => setImmediate(done));
    atOnce--;
  };
  const parts = { bus: nats.bus, consumer: consumers.router, handler, log, maxDeliveries: 20 };
  const deadLetter = deadLetterTo(nats.bus, 'router', () => 1000);
  const loop = consume({ ...parts, deadLetter, slots: 8, batch: 3, confirmsAcks: false });
  let last = 0;
  for (let i = 0; i < 20; i++) last = await publish(`${i}`);
  await eventually('all acked', settled(last));
  await loop.stop();
  assert.equal(seen, 20);
  assert.ok(most <= 8, `${most} at one time`);
});

test('an operational error is delivered again after its delay', async () => {
  const counts: number[] = [];
  const loop = start(async (delivery) => {
    counts.push(delivery.deliveryCount);
    if (counts.length < 3) throw new OperationalError('AWAY', 'the database is away', { retryMs: 10 });
  });
  await eventually('acked at the third try', settled(await publish('again')));
  await loop.stop();
  assert.deepEqual(counts, [1, 2, 3]);
});

test('poison is kept whole as a dead letter, and never delivered again', async () => {
  let times = 0;
  const loop = start(async () => {
    times++;
    throw new PoisonError('UNDECODABLE', 'not an event');
  });
  const sequence = await publish('\0garbage');
  await eventually('terminated', settled(sequence));
  await loop.stop();
  const letter = await lastDeadLetter();
  assert.equal(times, 1);
  assert.deepEqual(
    {
      service: letter.service,
      reason: letter.reason,
      detail: letter.detail,
      sequence: letter.streamSequence,
    },
    { service: 'router', reason: 'UNDECODABLE', detail: 'not an event', sequence },
  );
  assert.equal(Buffer.from(letter.payload).toString(), '\0garbage');
});

test('a message that fails too often is a dead letter', async () => {
  const loop = start(async () => {
    throw new OperationalError('AWAY', 'always', { retryMs: 5 });
  }, 3);
  await eventually('given up', settled(await publish('never')));
  await loop.stop();
  assert.equal((await lastDeadLetter()).reason, 'DELIVERIES_EXHAUSTED');
});

test('the job of a message that fails too often is ended before the dead letter, however often that fails', async () => {
  const ended: number[] = [];
  const loop = consume({
    ...{ bus: nats.bus, consumer: consumers.router, slots: 4, maxDeliveries: 1, log },
    deadLetter: deadLetterTo(nats.bus, 'router', () => 1000),
    handler: async () => {
      throw new OperationalError('AWAY', 'always', { retryMs: 5 });
    },
    exhausted: async ({ deliveryCount }) => {
      ended.push(deliveryCount);
      if (ended.length < 3) throw new OperationalError('AWAY', 'still', { retryMs: 5 });
    },
  });
  await eventually('given up', settled(await publish('never')));
  await loop.stop();
  assert.deepEqual(ended, [2, 3, 4]);
  assert.equal((await lastDeadLetter()).reason, 'DELIVERIES_EXHAUSTED');
});

test('a bug fails the loop and leaves the message unacked for the next process', async () => {
  const broken = start(async () => {
    throw new TypeError('undefined is not a function');
  });
  const sequence = await publish('bug');
  await assert.rejects(broken.failed, TypeError);
  await broken.stop();
  assert.equal(await settled(sequence)(), false);
  assert.notEqual(await nats.bus.messageAt('JOBS', sequence), null);
});
