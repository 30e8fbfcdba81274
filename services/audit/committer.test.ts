/** The committer by itself, on a real ledger: what waits for its check keeps its place. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { emptyLedger, stores } from '../ledger/fixture.ts';
import { systemClock } from '../platform/clock.ts';
import { PoisonError } from '../platform/errors.ts';
import type { StreamMessage } from '../platform/nats/bus.ts';
import { Committer } from './committer.ts';

const [sqlite] = stores();
assert.ok(sqlite);
after(() => sqlite.stop());

const at = (sequence: number): StreamMessage => ({
  ...{ stream: 'JOBS', sequence, headers: {}, data: Buffer.from('not an event') },
  subject: `job.started.acme.0198c2f0-0000-7000-8000-00000000000${sequence}`,
});

test('messages are recorded in the order in which they came, however long their checks take', async () => {
  await using ledger = await emptyLedger(sqlite);
  const bus = { messageAt: async () => null, identity: null };
  const committer = new Committer({ bus, ledger, clock: systemClock, onCommitted: () => undefined });
  const checks = [1, 2, 3, 4].map(() => Promise.withResolvers<void>());
  const [first, second, third, fourth] = checks;
  const recorded = checks.map(({ promise }, index) => committer.record(at(index + 1), promise));
  fourth?.resolve();
  third?.reject(new PoisonError('BAD_EVENT_SIGNATURE', 'nobody said this'));
  second?.resolve();
  setImmediate(() => first?.resolve());
  const outcomes = await Promise.allSettled(recorded);
  assert.deepEqual(
    outcomes.map(({ status }) => status),
    ['fulfilled', 'fulfilled', 'rejected', 'fulfilled'],
  );
  const records = await ledger.store.records(0, { records: 10, bytes: 1e6 });
  assert.deepEqual(
    records.map(({ streamSequence }) => streamSequence),
    [1, 2, 4],
  );
});
