/** What a submitter can read, how it waits, and what it cannot see. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { LogStream } from '../platform/codec.ts';
import { decodeAs, encode } from '../platform/codec.ts';
import { publishSigned } from '../platform/events.ts';
import type { JobRef } from '../platform/topology.ts';
import { headerNames, subjects } from '../platform/topology.ts';
import type { Fixture } from './fixture.ts';
import {
  ask,
  askJson,
  askPage,
  askRecords,
  eventually,
  fixture,
  newJob,
  newTraceparent,
  stopTelemetry,
  submission,
  submit,
} from './fixture.ts';

let f: Fixture;
before(async () => {
  f = await fixture();
  await f.startAudit();
});
after(async () => {
  await f[Symbol.asyncDispose]();
  await stopTelemetry();
});

const recorded = (tenant: string, count: number) =>
  eventually(`${count} records of ${tenant}`, async () => (await askRecords(f.bus, tenant)).length === count);

function log(job: JobRef, sequence: number, text: string, stream: LogStream = 'stdout') {
  const chunk = { ...job, at: 1, attempt: 1, stream, sequence, offset: 0, bytes: Buffer.from(text) };
  const id = `executor:log-${stream}-${sequence}:${job.jobId}`;
  return publishSigned(f.bus, subjects.log(job, stream), id, encode('LogChunk', chunk));
}

describe('records', () => {
  test('come in pages, in order, of one tenant or one job', async () => {
    const jobs = Array.from({ length: 7 }, () => newJob('pages'));
    for (const job of jobs) await submit(f.bus, job);
    await recorded('pages', 7);
    const seen: number[] = [];
    for (let page = { next: -1, more: true }; page.more; ) {
      const got = await askPage(f.bus, 'pages', { what: 'records', after: page.next, limit: 3 });
      seen.push(...got.items.map((item) => item.sequence));
      page = got;
    }
    assert.deepEqual(seen, [0, 1, 2, 3, 4, 5, 6]);
    const one = await askRecords(f.bus, 'pages', jobs[4]?.jobId);
    assert.deepEqual(
      one.map((record) => record.tenantSequence),
      [4],
    );
    const none = await askPage(f.bus, 'pages', { what: 'records', after: 6 });
    assert.deepEqual(none, { items: [], next: 6, more: false });
  });

  test('fill no page beyond 512 KiB, and a larger one comes alone', async () => {
    for (const size of [300_000, 300_000, 600_000, 1000]) {
      const job = newJob('large');
      await submit(f.bus, job, submission(job, Buffer.alloc(size)));
    }
    await eventually('recorded', async () => {
      const page = await askPage(f.bus, 'large', { what: 'records', after: 2 });
      return page.items.length === 1;
    });
    const pages = [];
    for (let next = -1; next < 3; next = pages.at(-1)?.next ?? 3)
      pages.push(await askPage(f.bus, 'large', { what: 'records', after: next }));
    assert.deepEqual(
      pages.map((page) => page.items.length),
      [1, 1, 1, 1],
    );
  });

  test('are waited for', async () => {
    const job = newJob('waits');
    const waiting = askPage(f.bus, 'waits', { what: 'records', jobId: job.jobId, waitMs: 20_000 });
    await submit(f.bus, newJob('waits'));
    await recorded('waits', 1);
    const from = performance.now();
    await submit(f.bus, job);
    assert.deepEqual(
      (await waiting).items.map((item) => item.sequence),
      [1],
    );
    assert.ok(performance.now() - from < 5000);
  });

  test('that do not come are answered by an empty page in time', async () => {
    const page = await askPage(f.bus, 'nobody', { what: 'records', waitMs: 100 });
    assert.deepEqual(page, { items: [], next: -1, more: false });
  });

  test('of another tenant cannot be seen, whatever is asked', async () => {
    const secret = newJob('victim');
    await submit(f.bus, secret, submission(secret), { traceparent: newTraceparent() });
    await recorded('victim', 1);
    const { jobId } = secret;
    for (const body of [{ what: 'records' }, { what: 'records', jobId }, { what: 'logs', jobId }])
      assert.deepEqual((await askPage(f.bus, 'spy', body)).items, []);
    assert.deepEqual(await askJson(f.bus, 'spy', { what: 'jobs', jobId }), { jobs: [], more: false });
    assert.deepEqual(await askJson(f.bus, 'spy', { what: 'spans', jobId }), { spans: [] });
  });
});

describe('logs', () => {
  test('are those of the job, in order, and are waited for', async () => {
    const job = newJob('logs');
    await log(job, 0, 'a');
    await log(newJob('logs'), 0, 'not mine');
    await log({ ...job, tenant: 'other' }, 0, 'nor mine');
    await log(job, 1, 'b', 'stderr');
    const page = await askPage(f.bus, 'logs', { what: 'logs', jobId: job.jobId });
    const texts = page.items.map((item) => Buffer.from(decodeAs('LogChunk', item.bytes).bytes).toString());
    assert.deepEqual([texts, page.more], [['a', 'b'], false]);
    const waiting = askPage(f.bus, 'logs', {
      what: 'logs',
      jobId: job.jobId,
      after: page.next,
      waitMs: 20_000,
    });
    const from = performance.now();
    await log(job, 2, 'c');
    assert.equal((await waiting).items.length, 1);
    assert.ok(performance.now() - from < 2000);
  });

  test('come in pages', async () => {
    const job = newJob('logs');
    for (let i = 0; i < 5; i++) await log(job, i, 'x'.repeat(200_000));
    const first = await askPage(f.bus, 'logs', { what: 'logs', jobId: job.jobId });
    assert.deepEqual([first.items.length, first.more], [2, true]);
    const second = await askPage(f.bus, 'logs', {
      what: 'logs',
      jobId: job.jobId,
      after: first.next,
      limit: 1,
    });
    assert.deepEqual([second.items.length, second.more], [1, true]);
  });
});

test('jobs come newest first', async () => {
  const jobs = [newJob('list'), newJob('list')];
  for (const job of jobs) await submit(f.bus, job);
  await recorded('list', 2);
  const reply = await askJson(f.bus, 'list', { what: 'jobs' });
  const listed = reply.jobs as { jobId: string; state: string; plugin: string }[];
  assert.deepEqual(
    listed.map((job) => job.jobId),
    jobs.map((job) => job.jobId).reverse(),
  );
  assert.deepEqual([listed[0]?.state, listed[0]?.plugin], ['submitted', 'hello.sh']);
  const one = await askJson(f.bus, 'list', { what: 'jobs', limit: 1 });
  assert.equal(one.jobs?.length, 1);
});

describe('a bad request is told so', () => {
  const { jobId } = newJob();
  for (const body of [
    '',
    'nonsense',
    '[]',
    { what: 'everything' },
    { what: 'records', after: -2 },
    { what: 'records', tenant: 'victim' },
    { what: 'records', limit: 0 },
    { what: 'records', limit: 1001 },
    { what: 'records', waitMs: 20_001 },
    { what: 'records', jobId: '*' },
    { what: 'logs' },
    { what: 'logs', jobId: '>' },
    { what: 'spans', jobId: jobId.toUpperCase() },
    `{"what":"records"}${' '.repeat(5000)}`,
  ])
    test(JSON.stringify(body).slice(0, 60), async () => {
      const reply = await ask(f.bus, 'acme', body);
      assert.equal(reply.headers[headerNames.error], 'BAD_REQUEST');
      assert.match(Buffer.from(reply.data).toString(), /\w+ \w+/);
    });

  test('and so is a subject without a tenant', async () => {
    assert.equal((await ask(f.bus, 'UPPER', { what: 'records' })).headers[headerNames.error], 'BAD_REQUEST');
  });
});
