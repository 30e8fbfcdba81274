/** Ended jobs, on a real bus: a terminal event that nobody said is said, and a recorded one leaves its entry. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { TestNats } from '../../test/with-nats.ts';
import { startTestNats } from '../../test/with-nats.ts';
import { outgoing, publishEvent, signed } from '../platform/events.ts';
import type { JobEntry, JobSnapshot } from '../platform/job-state.ts';
import { endedEntry, JobStates, openEntry, terminalOf } from '../platform/job-state.ts';
import { createLogger } from '../platform/log.ts';
import { subjects } from '../platform/topology.ts';
import { Endings } from './endings.ts';

let nats: TestNats;
let states: JobStates;
let nowMs = 0;
before(async () => {
  nats = await startTestNats();
  states = await JobStates.bind(nats.bus);
});
after(() => nats.stop());

let count = 0;
async function endedJob() {
  const jobId = `019d0000-0000-7000-8000-${String(++count).padStart(12, '0')}`;
  const job = { tenant: 'acme', jobId };
  const { sequence } = await nats.bus.publish(subjects.job('submitted', job), Buffer.from('x'));
  const cause = { stream: 'SUBMISSIONS', sequence };
  const event = outgoing(
    'JobCancelled',
    { ...job, cancelledAt: 1, requestedBy: 'x', reason: '' },
    { subject: subjects.job('cancelled', job), id: `router:cancelled:${sequence}`, cause, traceparent: null },
  );
  const entry = openEntry(job, {
    submissionSequence: sequence,
    traceparent: null,
    deadline: 9,
    maxAttempts: 1,
  });
  const snapshot = await states.create(endedEntry(entry, signed(nats.bus, event)));
  return { job, event, sequence, snapshot: snapshot as JobSnapshot };
}

async function looks(snapshot: JobSnapshot, atMs: readonly number[]): Promise<JobEntry | undefined> {
  const clock = { nowMs: () => nowMs, monotonicMs: () => nowMs };
  const endings = new Endings({ bus: nats.bus, states, clock, log: createLogger('router', 'fatal') });
  nowMs = 0;
  endings.see(snapshot);
  for (nowMs of atMs) await endings.tick();
  return (await states.read(snapshot.entry))?.entry;
}

test('a terminal event that its ender did not come to say is said, after a while', async () => {
  const { event, snapshot } = await endedJob();
  await looks(snapshot, [5_000]);
  assert.equal(await nats.bus.nextMessage('JOBS', 1, event.subject), null);
  const entry = await looks(snapshot, [5_000, 20_000]);
  const said = await nats.bus.nextMessage('JOBS', 1, event.subject);
  assert.deepEqual(Buffer.from(said?.data ?? []), Buffer.from(event.data));
  assert.notEqual(entry && terminalOf(entry), null);
});

test('one that is on the bus is not said twice', async () => {
  const { event, snapshot } = await endedJob();
  const { sequence } = await publishEvent(nats.bus, event);
  await looks(snapshot, [5_000, 20_000, 60_000]);
  assert.equal((await nats.bus.streamState('JOBS')).lastSequence, sequence);
});

test('when its submission has left the bus the entry is made small, and its job stays ended', async () => {
  const { sequence, snapshot } = await endedJob();
  await nats.bus.deleteMessage('SUBMISSIONS', sequence);
  const entry = await looks(snapshot, [5_000]);
  assert.equal(entry?.state, 'ended');
  assert.equal(entry?.terminal?.data, null);
  assert.equal(entry?.terminal?.subject, snapshot.entry.terminal?.subject);
});
