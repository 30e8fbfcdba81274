import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { placeKey } from '../ledger/keys.ts';
import { described } from '../ledger/plan.ts';
import { OperationalError } from '../platform/errors.ts';
import type { StreamMessage } from '../platform/nats/bus.ts';
import { headerNames } from '../platform/topology.ts';
import { causesFirst } from './causes.ts';

/** `S1`, `J2`, …; the cause after a `<`. */
function message(text: string): StreamMessage {
  const [place = '', cause] = text.split('<');
  const headers = cause === undefined ? {} : { [headerNames.cause]: longName(cause) };
  const [stream = '', sequence = ''] = longName(place).split(':');
  return { stream, sequence: Number(sequence), subject: place, data: new Uint8Array(), headers };
}
const longName = (place: string) =>
  place.replace(/^S/, 'SUBMISSIONS:').replace(/^J/, 'JOBS:').replace(/^L/, 'LOGS:');

const onTheBus = ['S1', 'J1<S1', 'J2<J1', 'J3<J2', 'J4<S9', 'J8<J9', 'J9<J8'];

describe('order respects cause', () => {
  const cases: [batch: string, committed: string, order: string][] = [
    ['S1 J1<S1', '', 'S1 J1'],
    ['J1<S1 S1', '', 'S1 J1'],
    ['J3<J2', '', 'S1 J1 J2 J3'],
    ['J3<J2', 'J1', 'J2 J3'],
    ['J3<J2 J1<S1', 'S1', 'J1 J2 J3'],
    ['J3<J2 J2<J1', 'J2', 'J3 J2'],
    ['J5<S7', '', 'J5'],
    ['J5<L1', '', 'J5'],
    ['J5<J5', '', 'J5'],
    ['J9<J8', '', 'J8 J9'],
    ['S5<J1', '', 'S5'],
  ];
  for (const [batch, committed, order] of cases)
    test(`${batch} | ${committed} | ${order}`, async () => {
      const known = committed.split(' ').map(longName);
      const { messages, failed } = await causesFirst(batch.split(' ').map(message).map(described), {
        committed: async (places) => new Set(places.map(placeKey).filter((key) => known.includes(key))),
        fetch: async (cause) => {
          const found = onTheBus
            .map(message)
            .find((m) => m.stream === cause.stream && m.sequence === cause.sequence);
          return found ?? null;
        },
      });
      assert.equal(messages.map((one) => one.message.subject).join(' '), order);
      assert.equal(failed.size, 0);
    });

  test('an event whose cause cannot be fetched waits alone', async () => {
    const away = new OperationalError('READ_FAILED', 'away');
    const batch = ['J3<J2', 'S4', 'J7<S6'].map(message);
    const { messages, failed } = await causesFirst(batch.map(described), {
      committed: async (places) =>
        new Set(places.filter(({ stream }) => stream === 'SUBMISSIONS').map(placeKey)),
      fetch: () => Promise.reject(away),
    });
    assert.deepEqual(
      messages.map((one) => one.message),
      batch.slice(1),
    );
    assert.deepEqual([...failed], [[batch[0], away]]);
  });
});
