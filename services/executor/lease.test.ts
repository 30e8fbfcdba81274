import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { TestNats } from '../../test/with-nats.ts';
import { eventually, startTestNats } from '../../test/with-nats.ts';
import { systemClock } from '../platform/clock.ts';
import type { JobSnapshot } from '../platform/job-state.ts';
import { JobStates, openEntry } from '../platform/job-state.ts';
import { newJob } from './fixture.ts';
import { Lease, LeaseLost } from './lease.ts';

let nats: TestNats;
let states: JobStates;
before(async () => {
  nats = await startTestNats();
  states = await JobStates.bind(nats.bus);
});
after(() => nats.stop());

interface Held {
  readonly lease: Lease;
  readonly lost: string[];
  readonly cancels: string[];
}

async function openJob(): Promise<JobSnapshot> {
  const entry = openEntry(newJob(), {
    submissionSequence: 1,
    traceparent: null,
    deadline: 9,
    maxAttempts: 2,
  });
  const snapshot = await states.create(entry);
  assert.ok(snapshot);
  return snapshot;
}

async function hold(snapshot: JobSnapshot, from = states, leaseMs = 15_000): Promise<Held> {
  const lost: string[] = [];
  const cancels: string[] = [];
  const claimed = { ...snapshot.entry, state: 'claimed', executor: 'me', beat: 1 } as const;
  const lease = await Lease.take(from, snapshot, claimed, {
    leaseMs,
    clock: systemClock,
    onCancel: ({ reason }) => void cancels.push(reason),
    onLost: (message) => void lost.push(message),
  });
  assert.ok(lease);
  return { lease, lost, cancels };
}
const now = async (snapshot: JobSnapshot) => (await states.read(snapshot.entry))?.entry;

/** The real states, with one method of ours. */
function replacingBy(replace: JobStates['replace']): JobStates {
  const read = (job: Parameters<JobStates['read']>[0]) => states.read(job);
  return Object.create(states, { replace: { value: replace }, read: { value: read } }) as JobStates;
}

describe('a lease', () => {
  test('of two that take a job, one gets it', async () => {
    const snapshot = await openJob();
    const options = {
      leaseMs: 15_000,
      clock: systemClock,
      onCancel: () => undefined,
      onLost: () => undefined,
    };
    const both = await Promise.all(
      ['a', 'b'].map((executor) =>
        Lease.take(states, snapshot, { ...snapshot.entry, state: 'claimed', executor }, options),
      ),
    );
    assert.equal(both.filter((lease) => lease !== null).length, 1);
    for (const lease of both) lease?.release();
  });

  test('is renewed, and a start between renewals counts the attempt once', async () => {
    const snapshot = await openJob();
    const { lease, lost } = await hold(snapshot);
    lease.renew();
    const start = lease.start();
    lease.renew();
    await start;
    await eventually('renewals', async () => (await now(snapshot))?.beat === 4);
    const entry = await now(snapshot);
    assert.deepEqual([entry?.state, entry?.attempt, lost], ['started', 1, []]);
    lease.release();
  });

  test('a cancel in the entry is seen at a renewal, and the renewal goes in on top', async () => {
    const snapshot = await openJob();
    const { lease, cancels, lost } = await hold(snapshot);
    await states.change(snapshot.entry, (entry) => ({
      ...entry,
      cancel: { requestedBy: 'a', reason: 'enough' },
    }));
    lease.renew();
    await eventually('renewal', async () => (await now(snapshot))?.beat === 2);
    assert.deepEqual([cancels, lost, (await now(snapshot))?.cancel?.reason], [['enough'], [], 'enough']);
    lease.release();
  });

  test('an entry that was taken or ended is never written again', async () => {
    const snapshot = await openJob();
    const { lease, lost } = await hold(snapshot);
    await states.change(snapshot.entry, (entry) => ({ ...entry, executor: 'other' }));
    await assert.rejects(lease.start(), LeaseLost);
    assert.match(lost.join(), /taken away: it is claimed, by other/);
    assert.deepEqual([(await now(snapshot))?.state, lease.lost], ['claimed', true]);
  });

  test('a confirmation that is lost is no loss: the renewal that came through is known again', async () => {
    const snapshot = await openJob();
    const { lease, lost } = await hold(snapshot);
    // As if our own renewal had come through unseen.
    await states.change(snapshot.entry, (entry) => ({ ...entry, beat: entry.beat + 1 }));
    await lease.start();
    assert.deepEqual([(await now(snapshot))?.attempt, lost], [1, []]);
    lease.release();
  });

  test('one renewal that is never answered does not hold up the next', async () => {
    const snapshot = await openJob();
    let swallowed = 0;
    const lossy = replacingBy(async (from, entry) => {
      if (entry.beat !== 2 || swallowed > 0) return states.replace(from, entry);
      swallowed += 1;
      // It comes through, only its confirmation does not.
      await states.replace(from, entry);
      return new Promise(() => undefined);
    });
    const { lease, lost } = await hold(snapshot, lossy, 8_000);
    lease.renew();
    await eventually('later renewals', async () => ((await now(snapshot))?.beat ?? 0) > 4);
    await lease.start();
    assert.deepEqual([swallowed, lost, (await now(snapshot))?.attempt], [1, [], 1]);
    lease.release();
  });

  test('that cannot be renewed is given up five seconds before others may think so', async () => {
    const snapshot = await openJob();
    let silent = false;
    const deaf = replacingBy((from, entry) =>
      silent ? new Promise(() => undefined) : states.replace(from, entry),
    );
    const { lease, lost } = await hold(snapshot, deaf, 6_000);
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    assert.deepEqual(lost, [], 'renewed for longer than one hold');
    const { beat } = lease.entry;
    assert.ok(beat > 3);
    silent = true;
    const since = performance.now();
    await eventually('loss', () => lost.length > 0);
    assert.ok(performance.now() - since < 1_100, 'the hold is one second of a lease of six');
    assert.equal(lease.lost, true);
  });
});
