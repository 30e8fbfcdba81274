/**
 * A tenant that tries things, with nothing but its own credentials and a NATS client. Everything is refused, everybody
 * else works on, and the operator can see the attempt: in the server's log, or in the ledger.
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { NatsConnection } from 'nats';
import { headers, connect as natsConnect, nkeyAuthenticator } from 'nats';
import type { SandbusClient } from '../../services/client/index.ts';
import { connect, uuidV7 } from '../../services/client/index.ts';
import type { JobSubmitted } from '../../services/platform/codec.ts';
import { decodeAs, encode } from '../../services/platform/codec.ts';
import type { Bus } from '../../services/platform/nats/bus.ts';
import { eventually } from '../with-nats.ts';
import type { TestSystem } from '../with-system.ts';
import { connectAsDeployment, finished, sha256, startTestSystem, text } from '../with-system.ts';

let system: TestSystem;
let deployment: Bus;
/** The victim. */
let other: SandbusClient;
let attacker: NatsConnection;
const complaints: string[] = [];

before(async () => {
  system = await startTestSystem({}, { tenants: ['acme', 'other'] });
  deployment = await connectAsDeployment(system);
  other = await connect({
    url: system.url,
    tenant: 'other',
    credentials: system.system.credentialsOf('other'),
  });
  const seed = /^SU\w+$/m.exec(readFileSync(system.system.credentialsOf('acme'), 'utf8'))?.[0] ?? '';
  attacker = await natsConnect({
    servers: system.url,
    authenticator: nkeyAuthenticator(Buffer.from(seed)),
  });
  void listenToComplaints(attacker);
});
after(async () => {
  await attacker.close();
  await other.close();
  await deployment.close();
  await system.stop();
});

async function listenToComplaints(connection: NatsConnection): Promise<void> {
  for await (const status of connection.status())
    if (status.permissionContext !== undefined)
      complaints.push(`${status.permissionContext.operation} ${status.permissionContext.subject}`);
}

const serverLog = () => readFileSync(join(system.stateDir, 'nats/nats-server.log'), 'utf8');

const streams = [
  'SUBMISSIONS',
  'JOBS',
  'LOGS',
  'KV_jobs',
  'KV_schemas',
  'KV_uploads',
  'OBJ_plugins',
  'OBJ_artifacts',
];

/** How much each stream holds, and the highest sequence that it ever gave. */
async function holdings(): Promise<Record<string, unknown>> {
  const states = streams.map(async (name) => {
    const { messages, lastSequence } = await deployment.streamState(name);
    return [name, { messages, lastSequence }] as const;
  });
  return { ...Object.fromEntries(await Promise.all(states)), records: await recordCount() };
}

let counted = { records: 0, sequence: 0 };
/** Records in the feed; the checkpoints between them come when nobody does anything, too. */
async function recordCount(): Promise<number> {
  let { records, sequence } = counted;
  for (;;) {
    const message = await deployment.nextMessage('AUDIT', sequence + 1, 'audit.>');
    if (message === null) break;
    sequence = message.sequence;
    records++;
  }
  counted = { records, sequence };
  return records;
}

/** When nothing is under way any more, so that a change is the attacker's. */
async function quiet(): Promise<Record<string, unknown>> {
  let before = '';
  let now: Record<string, unknown> = {};
  await eventually('the bus is quiet', async () => {
    // Asked first: what is still done meanwhile is then in the holdings.
    const done = (await allSettled()) && (await allSigned());
    now = await holdings();
    const same = JSON.stringify(now) === before;
    before = JSON.stringify(now);
    if (!same) await new Promise((resolve) => setTimeout(resolve, 300));
    return same && done;
  });
  return now;
}

/** The router makes the entries of ended jobs small, a few seconds after their end. */
async function allSettled(): Promise<boolean> {
  let message = await deployment.nextMessage('KV_jobs', 1, '>');
  for (; message !== null; message = await deployment.nextMessage('KV_jobs', message.sequence + 1, '>')) {
    const entry = JSON.parse(text(message.data)) as { terminal: { data: string | null } | null };
    if (entry.terminal !== null && entry.terminal.data !== null) return false;
  }
  return true;
}

/** A checkpoint follows the last record within a second: then audit has said all. */
async function allSigned(): Promise<boolean> {
  const { lastSequence } = await deployment.streamState('AUDIT');
  const last = await deployment.nextMessage('AUDIT', lastSequence, '>');
  return last === null || last.subject === 'audit-checkpoint';
}

async function otherStillWorks(): Promise<void> {
  const bytes = Buffer.from('echo unharmed\n');
  const { jobId } = await other.submit({
    plugin: { name: 'o.sh', bytes },
    envelope: system.sign('o.sh', bytes),
  });
  assert.equal(text(finished(await other.wait(jobId)).stdout.inline), 'unharmed\n');
}

const id = '019d5f00-1111-7222-8333-444455556666';
const sha = 'ab'.repeat(32);

const forbiddenPublishes: readonly string[] = [
  ...['verified', 'rejected', 'started', 'finished', 'cancelled', 'superseded', 'dead-lettered'].map(
    (kind) => `job.${kind}.acme.${id}`,
  ),
  `work.bash.cpu.acme.${id}`,
  `log.acme.${id}.stdout`,
  'trace.verifier',
  `audit.acme.${id}.finished`,
  'audit-checkpoint',
  'wake.bash.cpu',
  'cancel-notice.some-executor',
  // Of another tenant.
  `job.submitted.other.${id}`,
  `job.cancel-requested.other.${id}`,
  `upload.other.${sha}`,
  `download.other.${sha}`,
  'audit-read.other',
  // Of nobody, and of everybody.
  'job.submitted',
  'job.submitted.acme',
  // What lies under the streams.
  `$KV.jobs.acme.${id}`,
  '$KV.schemas.0000000000000000',
  '$O.plugins.C.x',
  '$O.plugins.M.x',
  '$JS.ACK.JOBS.router.1.1.1.1.0',
  // The inboxes of services and of deployment, and replies under way.
  '_INBOX_verifier.x',
  '_INBOX_audit.x',
  '_INBOX_deployment.x',
  '_R_.abcdef.x',
  '$SYS.REQ.SERVER.PING',
  '$SYS.REQ.ACCOUNT.sandbus.CONNZ',
];

const apiCalls: readonly [call: string, body: object][] = [
  ['INFO', {}],
  ['STREAM.NAMES', {}],
  ['STREAM.LIST', {}],
  ['STREAM.INFO.JOBS', {}],
  ['STREAM.CREATE.MINE', { name: 'MINE', subjects: ['mine'] }],
  ['STREAM.UPDATE.JOBS', { name: 'JOBS', subjects: ['nothing'] }],
  ['STREAM.PURGE.JOBS', {}],
  ['STREAM.PURGE.KV_jobs', {}],
  ['STREAM.DELETE.SUBMISSIONS', {}],
  ['STREAM.MSG.GET.SUBMISSIONS', { seq: 1 }],
  ['STREAM.MSG.DELETE.SUBMISSIONS', { seq: 1 }],
  ['STREAM.SNAPSHOT.JOBS', { deliver_subject: 'x' }],
  ['DIRECT.GET.KV_jobs', { last_by_subj: `$KV.jobs.other.${id}` }],
  ['DIRECT.GET.OBJ_plugins', { seq: 1 }],
  ['CONSUMER.LIST.JOBS', {}],
  ['CONSUMER.CREATE.JOBS', { stream_name: 'JOBS', config: { deliver_subject: 'x' } }],
  ['CONSUMER.CREATE.SUBMISSIONS.mine', { stream_name: 'SUBMISSIONS', config: { name: 'mine' } }],
  ['CONSUMER.DURABLE.CREATE.JOBS.mine', { stream_name: 'JOBS', config: { durable_name: 'mine' } }],
  ['CONSUMER.DELETE.JOBS.audit', {}],
  ['CONSUMER.MSG.NEXT.SUBMISSIONS.verifier', { batch: 1 }],
  ['ACCOUNT.PURGE.sandbus', {}],
];

const forbiddenSubscriptions: readonly string[] = [
  '>',
  '*.>',
  'job.>',
  `job.submitted.acme.*`,
  'work.>',
  'log.>',
  'log.acme.>',
  'trace.*',
  'audit.>',
  'audit.*.*.finished',
  'audit.other.>',
  'audit-read.*',
  'upload.acme.*',
  'wake.>',
  'cancel-notice.*',
  '$JS.>',
  '$JS.API.>',
  '$JS.EVENT.ADVISORY.>',
  '$KV.>',
  '$O.>',
  '$SYS.>',
  '_INBOX_audit.>',
  '_INBOX_verifier.>',
  '_R_.>',
  '_GR_.>',
];

const refusedAndLogged = async (operation: 'publish' | 'subscription', subject: string) => {
  await eventually(`${operation} ${subject} is refused`, () =>
    complaints.includes(`${operation} ${subject}`),
  );
  const kind = operation === 'publish' ? 'Publish' : 'Subscription';
  await eventually(`${subject} is in the server's log`, () =>
    serverLog()
      .split('\n')
      .some((line) => line.includes(`${kind} Violation`) && line.includes(`"${subject}"`)),
  );
};

test('before anything is tried, a job of every kind of step leaves no violation in the log', async () => {
  const bytes = Buffer.concat([Buffer.from('echo out > /job/out/a; cat\n'), Buffer.alloc(600_000, '#')]);
  const { jobId } = await system.client.submit({
    plugin: { name: 'large.sh', bytes },
    envelope: system.sign('large.sh', bytes),
    stdin: Buffer.from('in\n'),
  });
  const event = finished(await system.client.wait(jobId));
  assert.equal(text(event.stdout.inline), 'in\n', JSON.stringify(event.error));
  const [artifact] = event.artifacts;
  const chunks: Uint8Array[] = [];
  for await (const chunk of system.client.download(artifact?.sha256 ?? '')) chunks.push(chunk);
  assert.equal(text(Buffer.concat(chunks)), 'out\n');
  for await (const item of system.client.logs(jobId)) assert.equal(item.kind, 'output');
  await otherStillWorks();
  assert.doesNotMatch(serverLog(), /Violation/);
});

describe('a tenant may not publish', () => {
  for (const subject of forbiddenPublishes)
    test(subject, async () => {
      attacker.publish(subject, Buffer.from('x'));
      await refusedAndLogged('publish', subject);
    });
});

describe('a tenant may not call', () => {
  for (const [call, body] of apiCalls)
    test(`$JS.API.${call}`, async () => {
      const subject = `$JS.API.${call}`;
      await assert.rejects(attacker.request(subject, JSON.stringify(body), { timeout: 1000 }));
      await refusedAndLogged('publish', subject);
    });
});

describe('a tenant may not listen to', () => {
  for (const subject of forbiddenSubscriptions)
    test(subject, async () => {
      const heard: string[] = [];
      attacker.subscribe(subject, { callback: (_, message) => void heard.push(message?.subject) });
      await refusedAndLogged('subscription', subject);
      assert.deepEqual(heard.filter(Boolean), []);
    });
  test('as a service among others', async () => {
    attacker.subscribe('upload.*.*', { queue: 'verifier', callback: () => undefined });
    await refusedAndLogged('subscription', 'upload.*.*');
    const digest = createHash('sha256').update('content').digest('hex');
    assert.equal(await other.upload(Buffer.from('content')), digest);
  });
});

describe('a reply is mapped where it leaves the tenant, and can be aimed at nothing', () => {
  const targets = [
    '$JS.API.STREAM.PURGE.JOBS',
    '$JS.API.STREAM.DELETE.SUBMISSIONS',
    '$JS.API.STREAM.PURGE.KV_jobs',
    '$JS.API.CONSUMER.DELETE.JOBS.router',
    `job.verified.acme.${id}`,
    `job.cancelled.other.${id}`,
    `work.bash.cpu.acme.${id}`,
    `audit.other.${id}.finished`,
    'audit-checkpoint',
    `$KV.jobs.other.${id}`,
    '$O.plugins.C.x',
    '_INBOX_audit.x',
    'wake.bash.cpu',
  ];
  const requests: [what: string, subject: string, body: Uint8Array][] = [
    ['records', 'audit-read.acme', Buffer.from('{"what":"records"}')],
    ['a refusal', 'audit-read.acme', Buffer.from('nonsense')],
    ['an upload', `upload.acme.${sha}`, new Uint8Array()],
    ['a download', `download.acme.${sha}`, new Uint8Array()],
  ];
  for (const [what, subject, body] of requests)
    test(`of ${what}`, async () => {
      const untouched = await quiet();
      for (const reply of targets) attacker.publish(subject, body, { reply });
      await attacker.flush();
      assert.deepEqual(await quiet(), untouched);
    });
  test("of the stream's confirmation", async () => {
    const before = (await quiet()) as Record<string, { messages: number }>;
    const recorded = await recordCount();
    for (const reply of targets)
      attacker.publish(`job.submitted.acme.${uuidV7()}`, Buffer.from('x'), { reply });
    await attacker.flush();
    // Each is a dead letter, and gone; nothing else has changed.
    await eventually('handled', async () => (await deployment.streamState('SUBMISSIONS')).messages === 0);
    const now = (await quiet()) as Record<string, { messages: number }>;
    for (const name of ['JOBS', 'KV_jobs', 'KV_schemas', 'OBJ_plugins', 'OBJ_artifacts'])
      assert.equal(now[name]?.messages, before[name]?.messages, name);
    assert.equal((await recordCount()) - recorded, 2 * targets.length);
    await otherStillWorks();
  });
  test('that looks like one under way is refused', async () => {
    attacker.publish('audit-read.acme', Buffer.from('{}'), { reply: '_R_.abc.def' });
    await eventually('logged', () => /Reply|_R_/.test(serverLog().split('\n').slice(-5).join('\n')));
  });
});

describe('message ids that collide', () => {
  test("with a service's next events suppress none of them", async () => {
    const { lastSequence } = await deployment.streamState('SUBMISSIONS');
    for (let next = lastSequence; next < lastSequence + 40; next++)
      for (const what of ['verifier:verified', 'router:routed', 'executor:finished-1']) {
        const ids = headers();
        ids.set('Nats-Msg-Id', `${what}:SUBMISSIONS:${next}`);
        attacker.publish(`job.submitted.acme.${uuidV7()}`, Buffer.from('x'), { headers: ids });
      }
    await attacker.flush();
    await otherStillWorks();
  });
  test("with another tenant's next submission suppress it not, even when its job id is known", async () => {
    const bytes = Buffer.from('echo unharmed\n');
    const jobId = uuidV7();
    for (const guess of [
      `submitter:other.${jobId}`,
      `other.${jobId}`,
      jobId,
      `job.submitted.other.${jobId}`,
    ]) {
      const ids = headers();
      ids.set('Nats-Msg-Id', guess);
      const own = uuidV7();
      const reply = await attacker.request(`job.submitted.acme.${own}`, Buffer.from('x'), {
        headers: ids,
        timeout: 5000,
      });
      assert.doesNotMatch(reply.string(), /"error"|"duplicate"/, guess);
      await eventually('the attempt is in the ledger', async () =>
        (await deadLetters(own)).includes('UNDECODABLE'),
      );
    }
    const plugin = { name: 'o.sh', bytes };
    const submitted = await other.submit({ plugin, envelope: system.sign('o.sh', bytes), jobId });
    assert.equal(submitted.duplicate, false);
    assert.equal(text(finished(await other.wait(jobId)).stdout.inline), 'unharmed\n');
    const again = await other.submit({ plugin, envelope: system.sign('o.sh', bytes), jobId });
    assert.equal(again.duplicate, true, 'its own repetition is still one');
  });
  test('with expectations about the stream, or an order to roll it up, are refused or ignored', async () => {
    await quiet();
    const recorded = await recordCount();
    for (const [name, value] of [
      ['Nats-Rollup', 'all'],
      ['Nats-Rollup', 'sub'],
      ['Nats-Expected-Last-Sequence', '0'],
      ['Nats-Expected-Stream', 'JOBS'],
    ] as const) {
      const hdrs = headers();
      hdrs.set(name, value);
      const reply = await attacker.request(`job.submitted.acme.${uuidV7()}`, Buffer.from('x'), {
        headers: hdrs,
        timeout: 5000,
      });
      assert.match(reply.string(), /"error"/, name);
    }
    assert.equal(await recordCount(), recorded);
    await otherStillWorks();
  });
});

describe('what belongs to another tenant', () => {
  const script = Buffer.from('echo secret > /job/out/secret; echo secret; sleep 0.3\n');
  let job: string;
  let artifact: string;
  before(async () => {
    const submitted = await other.submit({
      plugin: { name: 's.sh', bytes: script },
      envelope: system.sign('s.sh', script),
    });
    job = submitted.jobId;
    artifact = finished(await other.wait(job)).artifacts[0]?.sha256 ?? '';
  });
  const ask = async (body: object) => {
    const reply = await attacker.request('audit-read.acme', JSON.stringify(body), { timeout: 5000 });
    return reply.data;
  };
  test('its records and output cannot be read', async () => {
    for (const what of ['records', 'logs'])
      assert.deepEqual(decodeAs('AuditPage', await ask({ what, jobId: job })).items, []);
    for (const what of ['jobs', 'spans'])
      assert.equal(Buffer.from(await ask({ what, jobId: job })).includes(job), false);
  });
  test('a tenant named in the body is not believed', async () => {
    const reply = await attacker.request('audit-read.acme', '{"what":"records","tenant":"other"}');
    assert.equal(reply.headers?.get('Sandbus-Error'), 'BAD_REQUEST');
  });
  test('its artifacts cannot be downloaded', async () => {
    const reply = await attacker.request(`download.acme.${artifact}`, '', { timeout: 5000 });
    assert.equal(reply.headers?.get('Sandbus-Error'), 'NOT_FOUND');
  });
  test('its uploads are neither seen nor used, although the digest is known and its jobs have brought them here', async () => {
    const input = Buffer.concat([Buffer.from('their secret\n'), Buffer.alloc(600_000)]);
    const reader = Buffer.from('head -1 secret.txt\n');
    const plugin = { name: 'reader.sh', bytes: reader };
    const envelope = system.sign('reader.sh', reader);
    const theirs = await other.submit({ plugin, envelope, inputs: [{ name: 'secret.txt', bytes: input }] });
    assert.equal(text(finished(await other.wait(theirs.jobId)).stdout.inline), 'their secret\n');
    const digest = sha256(input);

    const progress = headers();
    progress.set('Sandbus-Size', String(input.length));
    progress.set('Sandbus-Offset', '0');
    const asked = await attacker.request(`upload.acme.${digest}`, '', { headers: progress, timeout: 5000 });
    assert.deepEqual(JSON.parse(asked.string()), { offset: 0, complete: false });

    const jobId = uuidV7();
    const job: JobSubmitted = {
      ...{ jobId, tenant: 'acme', submittedAt: Date.now() * 1000, envelope, args: [], env: {}, stdin: null },
      plugin: { name: 'reader.sh', content: { inline: reader, sha256: sha256(reader), size: reader.length } },
      inputs: [{ name: 'secret.txt', content: { inline: null, sha256: digest, size: input.length } }],
      limits: {
        ...{ memoryBytes: null, cpuMillis: null, wallMs: null, cpuTimeMs: null },
        ...{ processes: null, outputBytes: null, tmpBytes: null },
      },
      ...{ requiresGpu: false, network: 'none', maxAttempts: 1, deadline: null, labels: {} },
    };
    await attacker.request(`job.submitted.acme.${jobId}`, encode('JobSubmitted', job), { timeout: 5000 });
    const result = await system.client.wait(jobId);
    assert.equal(result.kind === 'rejected' && result.event.reason, 'PLUGIN_UNAVAILABLE');
    assert.match(result.kind === 'rejected' ? result.event.detail : '', /input "secret.txt": tenant acme/);
  });
  test('its live records are not heard', async () => {
    const heard: string[] = [];
    attacker.subscribe('audit.acme.>', { callback: (_, message) => void heard.push(message.subject) });
    attacker.subscribe('audit-checkpoint', { callback: () => undefined });
    await otherStillWorks();
    assert.deepEqual(
      heard.filter((subject) => !subject.startsWith('audit.acme.')),
      [],
    );
  });
  test('a submission in its name on an own subject is a dead letter', async () => {
    const jobId = uuidV7();
    const cancel = { tenant: 'other', jobId: job, requestedAt: 1, requestedBy: 'me', reason: '' };
    await attacker.request(`job.cancel-requested.acme.${jobId}`, encode('JobCancelRequested', cancel));
    await eventually('it is in the ledger', async () =>
      (await deadLetters(jobId)).includes('SUBJECT_MISMATCH'),
    );
  });
  test('its running job cannot be cancelled under its id', async () => {
    const bytes = Buffer.from('sleep 1; echo done\n');
    const { jobId } = await other.submit({
      plugin: { name: 'w.sh', bytes },
      envelope: system.sign('w.sh', bytes),
    });
    const cancel = { tenant: 'acme', jobId, requestedAt: 1, requestedBy: 'me', reason: '' };
    await attacker.request(`job.cancel-requested.acme.${jobId}`, encode('JobCancelRequested', cancel));
    assert.equal(text(finished(await other.wait(jobId)).stdout.inline), 'done\n');
  });
  test('a job of the same id is another job', async () => {
    await attacker.request(`job.submitted.acme.${job}`, Buffer.from('x'));
    await eventually('it is a dead letter', async () => (await deadLetters(job)).includes('UNDECODABLE'));
    assert.equal((await other.job(job))?.state, 'finished');
  });
});

async function deadLetters(jobId: string): Promise<string[]> {
  const reasons: string[] = [];
  for await (const { event } of system.client.records({ jobId, follow: false }))
    if (event?.name === 'JobDeadLettered') reasons.push(event.value.reason);
  return reasons;
}

describe('who has no credentials', () => {
  const attempts: [what: string, options: object][] = [
    ['none at all', {}],
    [
      'a key of nobody',
      {
        authenticator: nkeyAuthenticator(
          Buffer.from('SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY'),
        ),
      },
    ],
    ['a user and a password', { user: 'verifier', pass: 'verifier' }],
    ['a token', { token: 'sandbus' }],
  ];
  for (const [what, options] of attempts)
    test(`${what}: is not let in, and it is in the log`, async () => {
      await assert.rejects(
        natsConnect({ servers: system.url, reconnect: false, ...options }),
        /AUTHORIZATION|AUTHENTICATION/i,
      );
      await eventually('logged', () => /authentication error/i.test(serverLog()));
    });
});

test('after all that, both tenants work', async () => {
  const result = finished(await system.run('end.sh', 'echo alive\n'));
  assert.equal(text(result.stdout.inline), 'alive\n');
  await otherStillWorks();
});
