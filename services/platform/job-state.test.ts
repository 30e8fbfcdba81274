import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { TestNats } from '../../test/with-nats.ts';
import { startTestNats } from '../../test/with-nats.ts';
import { outgoing } from './events.ts';
import type { JobEntry } from './job-state.ts';
import {
  endedEntry,
  endJob,
  JobStates,
  LeaseObserver,
  openEntry,
  republish,
  terminalKindOf,
} from './job-state.ts';
import type { ServiceName } from './topology.ts';

let nats: TestNats;
let states: JobStates;
before(async () => {
  nats = await startTestNats();
  states = await JobStates.bind(nats.bus);
});
after(() => nats.stop());

let count = 0;
function newEntry(): JobEntry {
  const jobId = `019d0000-0000-7000-8000-${String(++count).padStart(12, '0')}`;
  return openEntry(
    { tenant: 'acme', jobId },
    { submissionSequence: 1, traceparent: null, deadline: 9, maxAttempts: 1 },
  );
}

function cancelled(entry: JobEntry, by: string) {
  const { tenant, jobId } = entry;
  return outgoing(
    'JobCancelled',
    { tenant, jobId, cancelledAt: 1, requestedBy: by, reason: '' },
    {
      subject: `job.cancelled.${tenant}.${jobId}`,
      id: `router:${by}:${jobId}`,
      cause: { stream: 'SUBMISSIONS', sequence: 1 },
      traceparent: null,
    },
  );
}

test('a job has one entry: the second creation fails', async () => {
  const entry = newEntry();
  assert.notEqual(await states.create(entry), null);
  assert.equal(await states.create(entry), null);
});

test('of two that change one snapshot, one wins', async () => {
  const entry = newEntry();
  const snapshot = await states.create(entry);
  assert.ok(snapshot);
  const both = await Promise.all(
    ['a', 'b'].map((executor) => states.replace(snapshot, { ...entry, state: 'claimed', executor })),
  );
  assert.equal(both.filter((won) => won !== null).length, 1);
});

test('of twenty that end one job, one decides, and everybody publishes its bytes', async () => {
  const entry = newEntry();
  await states.create(entry);
  const ends = await Promise.all(
    Array.from({ length: 20 }, (_, i) =>
      endJob(nats.bus, states, entry, cancelled(entry, `w${i}`), () => true),
    ),
  );
  assert.equal(ends.filter((end) => end?.ours === true).length, 1);
  assert.equal(new Set(ends.map((end) => end?.winnerId)).size, 1);
  assert.equal(terminalKindOf((await states.read(entry))?.entry ?? entry), 'cancelled');
  const first = await nats.bus.nextMessage('JOBS', 1, `job.cancelled.acme.${entry.jobId}`);
  assert.ok(first);
  assert.equal(
    await nats.bus.nextMessage('JOBS', first.sequence + 1, `job.cancelled.acme.${entry.jobId}`),
    null,
  );
});

test('who may not end a job in its state does not', async () => {
  const entry = newEntry();
  await states.create({ ...entry, state: 'started' });
  assert.equal(await endJob(nats.bus, states, entry, cancelled(entry, 'x'), (e) => e.state === 'open'), null);
});

test('a lease is watched on the monotonic clock of the observer', () => {
  let now = 100;
  const leases = new LeaseObserver({ nowMs: () => 0, monotonicMs: () => now });
  const entry = newEntry();
  assert.equal(leases.unchangedMs({ entry, revision: 1 }), 0);
  now = 350;
  assert.equal(leases.unchangedMs({ entry, revision: 1 }), 250);
  assert.equal(leases.unchangedMs({ entry, revision: 2 }), 0);
});

const sayers: [service: ServiceName, says: boolean][] = [
  ['router', true],
  ['verifier', false],
  ['executor', false],
];
for (const [service, says] of sayers)
  test(`that a job was cancelled is said again by the ${service}: ${says}; it has ended all the same`, async () => {
    const entry = newEntry();
    const ended = endedEntry(entry, { ...cancelled(entry, 'router'), signature: 'x' });
    const said: string[] = [];
    const publish = async (subject: string) => {
      said.push(subject);
      return { sequence: 1, duplicate: false };
    };
    const [sign, check] = [() => 'x', () => assert.fail()];
    const identity = {
      service,
      sign,
      check,
      signAside: async () => sign(),
      checkAside: check,
      prepareAside: async () => {},
    };
    assert.equal(await republish({ publish, identity }, ended), true);
    assert.equal(said.length, says ? 1 : 0);
  });
