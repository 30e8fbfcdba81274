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

describe('jobs', () => {
  test('come newest first in pages, and by what is known of them', async () => {
    const jobs = Array.from({ length: 5 }, () => newJob('lists'));
    for (const job of jobs) await submit(f.bus, job, submission(job));
    await recorded('lists', 5);
    const seen: unknown[] = [];
    for (let before: number | undefined, more = true; more; ) {
      const page = (await askJson(f.bus, 'lists', { what: 'jobs', limit: 2, before })) as unknown as {
        jobs: { jobId: string; position: number }[];
        more: boolean;
      };
      seen.push(...page.jobs.map(({ jobId }) => jobId));
      before = page.jobs.at(-1)?.position;
      more = page.more;
    }
    assert.deepEqual(seen, jobs.map(({ jobId }) => jobId).toReversed());
    const count = async (filter: object) =>
      (await askJson(f.bus, 'lists', { what: 'jobs', ...filter })).jobs?.length;
    assert.equal(await count({ plugin: 'hello.sh', state: 'submitted' }), 5);
    assert.equal(await count({ plugin: 'other.sh' }), 0);
    assert.equal(await count({ state: 'finished' }), 0);
    assert.equal(await count({ since: Date.now() + 60_000 }), 0);
  });
});

describe('where things stand', () => {
  test('a position for each time: before, between, at and after the records', async () => {
    for (const at of [0, 1, 2]) {
      await submit(f.bus, newJob('times'));
      await recorded('times', at + 1);
    }
    const times = (await askRecords(f.bus, 'times')).map(({ recordedAt }) => recordedAt / 1000);
    const position = async (sinceMs: number) =>
      (await askJson(f.bus, 'times', { what: 'position', sinceMs })).after as unknown as number;
    assert.equal(await position(0), -1);
    for (const [index, time] of times.entries()) {
      assert.equal(await position(time), index - 1);
      assert.equal(await position(time + 0.001), index);
    }
    assert.equal(await position(Date.now() + 60_000), 2);
    const nobody = await askJson(f.bus, 'nobody-here', { what: 'position', sinceMs: 0 });
    assert.deepEqual(nobody, { after: -1 });
  });

  test('the smallest checkpoint that covers a record, when it is signed', async () => {
    await submit(f.bus, newJob('covered'));
    await recorded('covered', 1);
    const [record] = await askRecords(f.bus, 'covered');
    const standing = () =>
      askJson(f.bus, 'covered', { what: 'standing', sequence: record?.sequence }) as unknown as Promise<{
        size: number;
        covering: { treeSize: number } | null;
      }>;
    const found = await eventually('it is signed', async () => (await standing()).covering);
    assert.ok(found.treeSize > (record?.sequence ?? 0));
    const beyond = await askJson(f.bus, 'covered', { what: 'standing', sequence: 1_000_000 });
    assert.equal(beyond.covering, null);
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
