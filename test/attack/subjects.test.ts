/** Subjects that a tenant has no business with, and callers without credentials. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { connect as natsConnect, nkeyAuthenticator } from 'nats';
import { eventually } from '../with-nats.ts';
import { finished, text } from '../with-system.ts';
import { Attack, absentJob, absentSha256 } from './attack.ts';

let attack: Attack;
before(async () => {
  attack = await Attack.start();
});
after(() => attack.stop());

const forbiddenPublishes: readonly string[] = [
  ...['verified', 'rejected', 'started', 'finished', 'cancelled', 'superseded', 'dead-lettered'].map(
    (kind) => `job.${kind}.acme.${absentJob}`,
  ),
  `work.bash.cpu.acme.${absentJob}`,
  `log.acme.${absentJob}.stdout`,
  'trace.verifier',
  `audit.acme.${absentJob}.finished`,
  'audit-checkpoint',
  'wake.bash.cpu',
  'cancel-notice.some-executor',
  // Of another tenant.
  `job.submitted.other.${absentJob}`,
  `job.cancel-requested.other.${absentJob}`,
  `upload.other.${absentSha256}`,
  `download.other.${absentSha256}`,
  'audit-read.other',
  // Of nobody, and of everybody.
  'job.submitted',
  'job.submitted.acme',
  // What lies under the streams.
  `$KV.jobs.acme.${absentJob}`,
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
  ['DIRECT.GET.KV_jobs', { last_by_subj: `$KV.jobs.other.${absentJob}` }],
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

test('before anything is tried, a job of every kind of step leaves no violation in the log', async () => {
  const bytes = Buffer.concat([Buffer.from('echo out > /job/out/a; cat\n'), Buffer.alloc(600_000, '#')]);
  const { jobId } = await attack.system.client.submit({
    plugin: { name: 'large.sh', bytes },
    envelope: attack.system.sign('large.sh', bytes),
    stdin: Buffer.from('in\n'),
  });
  const event = finished(await attack.system.client.wait(jobId));
  assert.equal(text(event.stdout.inline), 'in\n', JSON.stringify(event.error));
  const [artifact] = event.artifacts;
  const chunks: Uint8Array[] = [];
  for await (const chunk of attack.system.client.download(artifact?.sha256 ?? '')) chunks.push(chunk);
  assert.equal(text(Buffer.concat(chunks)), 'out\n');
  for await (const item of attack.system.client.logs(jobId)) assert.equal(item.kind, 'output');
  await attack.othersWork();
  assert.doesNotMatch(attack.serverLog(), /Violation/);
});

describe('a tenant may not publish', () => {
  for (const subject of forbiddenPublishes)
    test(subject, async () => {
      attack.attacker.publish(subject, Buffer.from('x'));
      await attack.isRefusedAndLogged('publish', subject);
    });
});

describe('a tenant may not call', () => {
  for (const [call, body] of apiCalls)
    test(`$JS.API.${call}`, async () => {
      const subject = `$JS.API.${call}`;
      await assert.rejects(attack.attacker.request(subject, JSON.stringify(body), { timeout: 1000 }));
      await attack.isRefusedAndLogged('publish', subject);
    });
});

describe('a tenant may not listen to', () => {
  for (const subject of forbiddenSubscriptions)
    test(subject, async () => {
      const heard: string[] = [];
      attack.attacker.subscribe(subject, { callback: (_, message) => void heard.push(message?.subject) });
      await attack.isRefusedAndLogged('subscription', subject);
      assert.deepEqual(heard.filter(Boolean), []);
    });
  test('as a service among others', async () => {
    attack.attacker.subscribe('upload.*.*', { queue: 'verifier', callback: () => undefined });
    await attack.isRefusedAndLogged('subscription', 'upload.*.*');
    const digest = createHash('sha256').update('content').digest('hex');
    assert.equal(await attack.other.upload(Buffer.from('content')), digest);
  });
});

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
        natsConnect({ servers: attack.system.url, reconnect: false, ...options }),
        /AUTHORIZATION|AUTHENTICATION/i,
      );
      await eventually('logged', () => /authentication error/i.test(attack.serverLog()));
    });
});

test('after all that, both tenants work', async () => {
  const result = finished(await attack.system.run('end.sh', 'echo alive\n'));
  assert.equal(text(result.stdout.inline), 'alive\n');
  await attack.othersWork();
});
