/** The whole audit service on a real bus: what it must never lose, double, or reorder. */
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { encode } from '../platform/codec.ts';
import { ackWaitMs, consumers, eventId, headerNames, noToken, subjects } from '../platform/topology.ts';
import {
  ackAll,
  askJson,
  askRecords,
  cancelled,
  eventually,
  feed,
  fixture,
  newJob,
  newTraceparent,
  say,
  stopTelemetry,
  submission,
  submit,
} from './fixture.ts';

after(stopTelemetry);

const count = (bus: Awaited<ReturnType<typeof fixture>>['bus'], stream: string) =>
  bus.streamState(stream).then((state) => state.messages);

describe('recording', () => {
  test('an event is in the ledger before its message is acked', async () => {
    await using f = await fixture();
    const service = await f.startAudit();
    const job = newJob();
    const data = submission(job);
    const cause = await submit(f.bus, job, data);
    await eventually('ack', async () => (await f.bus.ackFloor('SUBMISSIONS', 'audit')) >= cause.sequence);
    const [record] = await askRecords(f.bus, 'acme');
    assert.equal(record?.eventId, eventId('submitter', 'submitted', cause, job));
    assert.deepEqual([record?.sequence, record?.tenantSequence, record?.signer], [0, 0, 'submitter']);
    assert.deepEqual(Buffer.from(record?.payload ?? []), data);
    await service.stop();
    assert.equal(
      f.ledger((db) => db.prepare('SELECT count(*) AS n FROM record').get()?.n),
      1,
    );
  });

  test('an effect that arrives before its cause is recorded after it', async () => {
    await using f = await fixture();
    const job = newJob();
    const submitted = await submit(f.bus, job);
    const verified = await say(f.bus, job, 'verified', Buffer.from('not avro'), submitted);
    const started = await say(f.bus, job, 'started', Buffer.from('not avro'), verified);
    // Only the newest event is handed to the service; the consumers have nothing to say.
    for (const [stream, last] of [
      ['SUBMISSIONS', submitted.sequence],
      ['JOBS', started.sequence - 1],
    ] as const)
      for (let sequence = 1; sequence <= last; sequence++)
        await (await f.bus.pullNow(stream, 'audit'))?.settle.ack();
    await f.startAudit();
    const records = await eventually('three records', async () => {
      const found = await askRecords(f.bus, 'acme', job.jobId);
      return found.length === 3 && found;
    });
    assert.deepEqual(
      records.map((record) => record.kind),
      ['submitted', 'verified', 'started'],
    );
  });

  test('what a writer before had been given is recorded at once, and before what came later', async () => {
    await using f = await fixture();
    const job = newJob();
    const submitted = await submit(f.bus, job);
    const started = await say(f.bus, job, 'started', Buffer.from('not avro'), submitted);
    const forged = { [headerNames.signature]: 'AAAA', [headerNames.cause]: 'SUBMISSIONS:1' };
    await f.bus.publish(subjects.job('verified', job), Buffer.from('a lie'), { headers: forged });
    for (const stream of ['SUBMISSIONS', 'JOBS', 'JOBS']) await f.bus.pullNow(stream, 'audit');
    // It has died. The bus holds these back until its time to ack them is over.
    await say(f.bus, job, 'finished', Buffer.from('not avro'), submitted);
    await f.startAudit();
    const records = await eventually(
      'the end',
      async () => {
        const found = await askRecords(f.bus, 'acme', job.jobId);
        return found.at(-1)?.kind === 'finished' && found;
      },
      ackWaitMs / 2,
    );
    assert.deepEqual(
      records.map((record) => record.kind),
      ['submitted', 'started', 'finished'],
    );
    assert.equal(await f.bus.ackFloor('JOBS', 'audit'), started.sequence - 1, 'its next delivery is acked');
  });

  test('a submitter cannot choose event ids or causes', async () => {
    await using f = await fixture();
    const victim = newJob();
    const job = newJob('evil');
    const headers = {
      'Nats-Msg-Id': `router:cancelled:${victim.jobId}:SUBMISSIONS:2`,
      [headerNames.cause]: 'JOBS:1',
    };
    await submit(f.bus, job, submission(job), headers);
    const cause = await submit(f.bus, victim);
    await say(f.bus, victim, 'cancelled', cancelled(victim), cause);
    await f.startAudit();
    await eventually('records', async () => (await askRecords(f.bus, 'acme')).length === 2);
    const [own] = await askRecords(f.bus, 'evil');
    assert.equal(own?.eventId, `submitter:submitted:${job.jobId}:SUBMISSIONS:1`);
  });

  for (const [what, subject] of [
    ['garbage on a good subject', `job.submitted.acme.${newJob().jobId}`],
    ['a subject without a job', 'job.submitted.acme.nonsense'],
    ['a subject without a tenant', `job.submitted.UPPER.${newJob().jobId}`],
    ['a subject with too many tokens', 'job.submitted.a.b.c.d'],
  ] as const)
    test(`${what} is recorded as the bytes it is`, async () => {
      await using f = await fixture();
      await f.bus.publish(subject, Buffer.from([0xc3, 0x01, 0xff, 0x00, 0x80]));
      await f.bus.publish(subject, new Uint8Array());
      await f.startAudit();
      await eventually('acks', async () => (await f.bus.ackFloor('SUBMISSIONS', 'audit')) === 2);
      const rows = f.ledger((db) => db.prepare('SELECT kind, payload FROM record ORDER BY sequence').all());
      assert.deepEqual(
        rows.map((row) => [row.kind, Buffer.from(row.payload as Uint8Array).toString('hex')]),
        [
          ['submitted', 'c301ff0080'],
          ['submitted', ''],
        ],
      );
      const { jobs } = await askJson(f.bus, 'acme', { what: 'jobs' });
      assert.deepEqual(jobs, []);
    });

  test('each new event of a job makes one span, a child of the event', async () => {
    await using f = await fixture();
    await f.startAudit();
    const job = newJob();
    const traceparent = newTraceparent();
    await submit(f.bus, job, submission(job), { traceparent });
    const [span] = await eventually('span', async () => {
      const { spans } = await askJson(f.bus, 'acme', { what: 'spans', jobId: job.jobId });
      return spans?.length === 1 && (spans as Record<string, unknown>[]);
    });
    const [, traceId, parentSpanId] = traceparent.split('-');
    const facts = { name: 'audit.commit', service: 'audit', kind: 5, status: 'unset', traceId, parentSpanId };
    assert.deepEqual({ ...span, ...facts }, span);
    assert.deepEqual({ ...(span?.attributes as object), 'sandbus.job.id': job.jobId }, span?.attributes);
    // Storing spans makes none, or they would breed for ever.
    assert.equal(
      f.ledger((db) => db.prepare('SELECT count(*) AS n FROM span').get()?.n),
      1,
    );
  });
});

describe('the feed', () => {
  test('has every record once and in order, over restarts', async () => {
    await using f = await fixture();
    for (let round = 0; round < 3; round++) {
      for (let i = 0; i < 40; i++) await submit(f.bus, newJob());
      const service = await f.startAudit();
      await eventually(
        'acks',
        async () => (await f.bus.ackFloor('SUBMISSIONS', 'audit')) === 40 * (round + 1),
      );
      await service.stop();
    }
    await f.startAudit();
    const all = await eventually('feed', async () => (await feed(f.bus)).length === 120 && feed(f.bus));
    assert.deepEqual(
      all.map((one) => one.ledgerSequence),
      Array.from({ length: 120 }, (_, i) => i),
    );
    assert.equal(all[0]?.subject, subjects.audit(all[0]?.record ?? newJob(), 'submitted'));
  });

  test('goes on after a message that is not its own', async () => {
    await using f = await fixture();
    await f.startAudit();
    await submit(f.bus, newJob());
    await eventually('first', async () => (await feed(f.bus)).length === 1);
    await f.bus.publish(subjects.auditCheckpoint, Buffer.from('a checkpoint'));
    await submit(f.bus, newJob());
    const all = await eventually('second', async () => (await feed(f.bus)).length === 2 && feed(f.bus));
    assert.deepEqual(
      all.map((one) => one.ledgerSequence),
      [0, 1],
    );
  });

  test('that has expired is not published again', async () => {
    await using f = await fixture();
    const first = await f.startAudit();
    for (let i = 0; i < 3; i++) await submit(f.bus, newJob());
    await eventually('saved', () =>
      f.ledger((db) => db.prepare('SELECT 1 FROM feed WHERE ledger_sequence = 2').get()),
    );
    await first.stop();
    const { lastSequence } = await f.bus.streamState('AUDIT');
    for (let i = 1; i <= lastSequence; i++) await f.bus.deleteMessage('AUDIT', i);
    await f.startAudit();
    await submit(f.bus, newJob());
    const [next] = await eventually('feed', async () => (await feed(f.bus)).length === 1 && feed(f.bus));
    assert.equal(next?.ledgerSequence, 3);
  });

  test('that is ahead of the ledger stops the start: an older ledger would fork history', async () => {
    await using f = await fixture();
    await f.bus.publish('audit.acme.x.submitted', Buffer.from('x'), {
      headers: { [headerNames.ledgerSequence]: '7' },
    });
    await assert.rejects(f.startAudit(), /AUDIT has record 7, the ledger only 0 records/);
  });
});

describe('a second service on the same ledger', () => {
  test('stands by, says so, and takes over when the first one ends', async () => {
    await using f = await fixture();
    const first = await f.startAudit();
    const second = await f.startAudit();
    const reasons = () => second.checks?.map((check) => check()) ?? [];
    assert.match(String(reasons()[0]), /stands by/);
    await submit(f.bus, newJob());
    await eventually('the first records', async () => (await askRecords(f.bus, 'acme')).length === 1);
    await first.stop();
    await eventually('taken over', () => reasons().every((reason) => reason === null));
    await submit(f.bus, newJob());
    await eventually('the second records', async () => (await askRecords(f.bus, 'acme')).length === 2);
    const sequences = await eventually('fed', async () => (await feed(f.bus)).length === 2 && feed(f.bus));
    assert.deepEqual(
      sequences.map((one) => one.ledgerSequence),
      [0, 1],
    );
  });

  test('that only stood by ends at once', async () => {
    await using f = await fixture();
    await f.startAudit();
    await (await f.startAudit()).stop();
  });
});

describe('leaving the bus', () => {
  test('messages of a job go after its end, and late ones too', async () => {
    await using f = await fixture();
    await f.startAudit();
    const [job, other] = [newJob(), newJob()];
    const cause = await submit(f.bus, job);
    await submit(f.bus, other);
    await ackAll(f.bus, 'SUBMISSIONS', consumers.verifier.durable);
    const started = await say(f.bus, job, 'started', Buffer.from('x'), cause);
    await say(f.bus, job, 'cancelled', cancelled(job), cause);
    await eventually('one submission left', async () => (await count(f.bus, 'SUBMISSIONS')) === 1);
    await eventually('no event left', async () => (await count(f.bus, 'JOBS')) === 0);
    await say(f.bus, job, 'superseded', Buffer.from('y'), started);
    await eventually(
      'late one recorded',
      async () => (await askRecords(f.bus, 'acme', job.jobId)).length === 4,
    );
    await eventually('late one gone', async () => (await count(f.bus, 'JOBS')) === 0);
  });

  test('nothing goes that only claims to end the job', async () => {
    await using f = await fixture();
    await f.startAudit();
    const [job, other] = [newJob(), newJob()];
    const cause = await submit(f.bus, job);
    await ackAll(f.bus, 'SUBMISSIONS', consumers.verifier.durable);
    await say(f.bus, job, 'cancelled', Buffer.from('garbage'), cause);
    await say(f.bus, job, 'rejected', cancelled(job), cause);
    await say(f.bus, job, 'cancelled', cancelled(other), cause, { id: 'router:other' });
    await eventually('recorded', async () => (await askRecords(f.bus, 'acme')).length === 4);
    assert.equal(await count(f.bus, 'JOBS'), 3);
    assert.equal(await count(f.bus, 'SUBMISSIONS'), 1);
  });

  test('a submission stays until the verifier has acked it', async () => {
    await using f = await fixture();
    await f.startAudit();
    const job = newJob();
    const cause = await submit(f.bus, job);
    await say(f.bus, job, 'cancelled', cancelled(job), cause);
    await eventually('event gone', async () => (await count(f.bus, 'JOBS')) === 0);
    assert.equal(await count(f.bus, 'SUBMISSIONS'), 1);
    await ackAll(f.bus, 'SUBMISSIONS', consumers.verifier.durable);
    await eventually('submission gone', async () => (await count(f.bus, 'SUBMISSIONS')) === 0);
  });

  test('pending deletions outlive a restart', async () => {
    await using f = await fixture();
    const service = await f.startAudit();
    const job = newJob();
    await say(f.bus, job, 'cancelled', cancelled(job), await submit(f.bus, job));
    await eventually('event gone', async () => (await count(f.bus, 'JOBS')) === 0);
    await service.stop();
    await ackAll(f.bus, 'SUBMISSIONS', consumers.verifier.durable);
    await f.startAudit();
    await eventually('submission gone', async () => (await count(f.bus, 'SUBMISSIONS')) === 0);
  });

  test('a dead letter takes its original with it, and itself', async () => {
    await using f = await fixture();
    await f.startAudit();
    const job = newJob();
    const cause = await submit(f.bus, job, Buffer.from('garbage'));
    const letter = { reason: 'UNDECODABLE', detail: '', headers: {}, payload: Buffer.from('garbage') };
    const from = {
      stream: cause.stream,
      streamSequence: cause.sequence,
      subject: subjects.job('submitted', job),
    };
    const about = { ...job, deadLetteredAt: 1, service: 'verifier' };
    await say(
      f.bus,
      job,
      'dead-lettered',
      encode('JobDeadLettered', { ...about, ...letter, ...from }),
      cause,
    );
    await eventually('original gone', async () => (await count(f.bus, 'SUBMISSIONS')) === 0);
    await eventually('letter gone', async () => (await count(f.bus, 'JOBS')) === 0);
    assert.equal((await askRecords(f.bus, 'acme')).length, 2);
  });

  test('what belongs to no job goes once it is recorded and handled', async () => {
    await using f = await fixture();
    await f.startAudit();
    const nobody = { tenant: noToken, jobId: noToken };
    await f.bus.publish(subjects.job('dead-lettered', nobody), Buffer.from('x'));
    await f.bus.publish('work.python.cpu', Buffer.from('x'));
    await f.bus.publish('job.submitted.x', Buffer.from('x'));
    await f.bus.publish(subjects.job('cancel-requested', newJob()), Buffer.from('for a job that never was'));
    await ackAll(f.bus, 'SUBMISSIONS', consumers.verifier.durable);
    await ackAll(f.bus, 'SUBMISSIONS', consumers.routerCancels.durable);
    for (const stream of ['JOBS', 'SUBMISSIONS'])
      await eventually(`${stream} empty`, async () => (await count(f.bus, stream)) === 0);
    assert.equal(
      f.ledger((db) => db.prepare('SELECT count(*) AS n FROM record').get()?.n),
      4,
    );
  });
});

describe('a full disk', () => {
  test('holds every ack back, and the service goes on when there is room again', async () => {
    await using f = await fixture();
    let grow = () => undefined as unknown;
    await f.startAudit((database) => {
      database.exec('PRAGMA max_page_count = 60');
      grow = () => database.exec('PRAGMA max_page_count = 1000000');
    });
    const jobs = Array.from({ length: 8 }, () => newJob());
    for (const job of jobs) await submit(f.bus, job, submission(job, Buffer.alloc(200_000)));
    await eventually('all delivered', async () => (await f.bus.pullNow('SUBMISSIONS', 'verifier')) !== null);
    const small = newJob();
    await submit(f.bus, small);
    await eventually(
      'the small one fits',
      async () => (await askRecords(f.bus, 'acme', small.jobId)).length === 1,
    );
    assert.equal((await askRecords(f.bus, 'acme')).length, 1);
    assert.equal(await f.bus.ackFloor('SUBMISSIONS', 'audit'), 0);
    grow();
    await eventually('all recorded', () =>
      f.ledger((db) => db.prepare('SELECT 1 FROM record WHERE sequence = 8').get()),
    );
    await eventually('fed', async () => (await feed(f.bus)).length === 9);
  });
});
