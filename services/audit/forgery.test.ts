/** What is on the bus and not signed by who may say it is no event: it moves no job, and everybody can see the attempt. */
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { decodeAs, encode } from '../platform/codec.ts';
import { publishSigned } from '../platform/events.ts';
import { openEntry } from '../platform/job-state.ts';
import type { JobRef } from '../platform/topology.ts';
import { consumers, eventId, headerNames, subjects } from '../platform/topology.ts';
import { supervise } from '../router/decide.ts';
import type { Fixture } from './fixture.ts';
import {
  ackAll,
  askJson,
  askPage,
  askRecords,
  cancelled,
  eventually,
  fixture,
  newJob,
  say,
  stopTelemetry,
  submit,
} from './fixture.ts';

after(stopTelemetry);

const letters = async (f: Fixture, job: JobRef) =>
  (await askRecords(f.bus, 'acme', job.jobId))
    .filter(({ kind }) => kind === 'dead-lettered')
    .map(({ payload, signer }) => ({ signer, ...decodeAs('JobDeadLettered', payload ?? new Uint8Array()) }));

/** What the router says of a job whose executor is lost, and the same with another outcome, which it may not say. */
function finishedByRouter(job: JobRef, outcome: 'executor_lost' | 'exited') {
  const facts = { submissionSequence: 1, traceparent: null, deadline: Date.now() * 2000, maxAttempts: 1 };
  const entry = { ...openEntry(job, facts), state: 'started' as const, attempt: 1, executor: 'e' };
  const decision = supervise(entry, { nowMs: Date.now(), unchangedMs: 60_000, leaseMs: 6_000 });
  assert.ok(decision?.kind === 'finished');
  return {
    subject: subjects.job('finished', job),
    id: eventId('router', 'finished', { stream: 'SUBMISSIONS', sequence: 1 }, job),
    data: encode('JobFinished', { ...decision.event, outcome }),
  };
}

/** Each publishes a terminal event of the job that its alleged author never said. */
const forgeries: [what: string, forge: (f: Fixture, job: JobRef) => Promise<unknown>][] = [
  [
    'without a signature',
    (f, job) =>
      f.bus.publish(subjects.job('cancelled', job), cancelled(job), { id: 'router:cancelled:SUBMISSIONS:1' }),
  ],
  [
    'signed by a service that may not say it',
    (f, job) =>
      publishSigned(
        f.bus,
        subjects.job('cancelled', job),
        'executor:cancelled:SUBMISSIONS:1',
        cancelled(job),
      ),
  ],
  [
    'with the signature of another event',
    (f, job) =>
      f.bus.publish(subjects.job('cancelled', job), cancelled(job), {
        id: 'router:cancelled:SUBMISSIONS:1',
        headers: {
          [headerNames.signature]:
            f.bus.identity?.sign({
              subject: subjects.job('cancelled', newJob()),
              id: 'router:cancelled:SUBMISSIONS:1',
              data: cancelled(job),
            }) ?? '',
        },
      }),
  ],
  [
    'by the router, of an executor that is not lost',
    (f, job) => {
      const { subject, id, data } = finishedByRouter(job, 'exited');
      return publishSigned(f.bus, subject, id, data);
    },
  ],
];

describe('a forged terminal event', () => {
  for (const [what, forge] of forgeries)
    test(`${what} ends no job, is a dead letter, and leaves the bus`, async () => {
      await using f = await fixture();
      await f.startAudit();
      const job = newJob();
      const cause = await submit(f.bus, job);
      await ackAll(f.bus, 'SUBMISSIONS', consumers.verifier.durable);
      await forge(f, job);
      const [letter] = await eventually('dead letter', async () => {
        const found = await letters(f, job);
        return found.length > 0 && found;
      });
      assert.deepEqual([letter?.signer, letter?.reason], ['audit', 'BAD_EVENT_SIGNATURE']);
      await eventually('gone', async () => (await f.bus.streamState('JOBS')).messages === 0);
      const { jobs } = await askJson(f.bus, 'acme', { what: 'jobs', jobId: job.jobId });
      const [row] = jobs as { state: string }[];
      assert.equal(row?.state, 'submitted');
      assert.equal((await f.bus.streamState('SUBMISSIONS')).messages, 1);
      // The real event, under the id that the forged one had taken, still ends the job.
      await say(f.bus, job, 'cancelled', cancelled(job), cause, {
        id: eventId('router', 'again', cause, job),
      });
      await eventually('ended', async () => (await f.bus.streamState('SUBMISSIONS')).messages === 0);
    });
});

test('that an executor is lost, the router may say: it ends the job', async () => {
  await using f = await fixture();
  await f.startAudit();
  const job = newJob();
  await submit(f.bus, job);
  await ackAll(f.bus, 'SUBMISSIONS', consumers.verifier.durable);
  const { subject, id, data } = finishedByRouter(job, 'executor_lost');
  await publishSigned(f.bus, subject, id, data);
  await eventually('ended', async () => (await f.bus.streamState('SUBMISSIONS')).messages === 0);
  assert.deepEqual(await letters(f, job), []);
});

test('the ledger holds signature and signer, and the feed is signed by audit', async () => {
  await using f = await fixture();
  await f.startAudit();
  const job = newJob();
  await say(f.bus, job, 'cancelled', cancelled(job), await submit(f.bus, job));
  const records = await eventually('records', async () => {
    const found = await askRecords(f.bus, 'acme', job.jobId);
    return found.length === 2 && found;
  });
  assert.deepEqual(
    records.map(({ signer, signature }) => [signer, signature?.length ?? 0]),
    [
      ['submitter', 0],
      ['router', 72],
    ],
  );
  // From the record alone, as a third party would check it.
  const { subject, eventId: id, signature, payload } = records[1] ?? assert.fail();
  const header = Buffer.from(signature ?? []).toString('base64');
  const headers = { 'Nats-Msg-Id': id, [headerNames.signature]: header };
  const verdict = f.bus.identity?.check({ subject, headers, data: payload ?? new Uint8Array() });
  assert.equal(verdict?.ok, true);
  const feed = await eventually('feed', () => f.bus.messageAt('AUDIT', 2));
  assert.deepEqual(f.bus.identity?.check(feed), { ok: true, signer: 'audit' });
});

test('log chunks that are not by the executor are no output', async () => {
  await using f = await fixture();
  await f.startAudit();
  const job = newJob();
  const chunk = (text: string) =>
    encode('LogChunk', {
      ...{ ...job, at: 1, attempt: 1, stream: 'stdout', sequence: 0, offset: 0 },
      bytes: Buffer.from(text),
    });
  const subject = subjects.log(job, 'stdout');
  await f.bus.publish(subject, chunk('forged'), { id: 'executor:log:1' });
  await publishSigned(f.bus, subject, 'verifier:log:1', chunk('forged too'));
  await publishSigned(f.bus, subject, 'executor:log:2', chunk('real'));
  const page = await askPage(f.bus, 'acme', { what: 'logs', jobId: job.jobId });
  assert.deepEqual(
    page.items.map(({ bytes }) => Buffer.from(decodeAs('LogChunk', bytes).bytes).toString()),
    ['real'],
  );
});
