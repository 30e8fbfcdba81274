/** What a message may say beside its body: where the reply goes, its id, what it expects of the stream. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { headers } from 'nats';
import { uuidV7 } from '../../services/client/index.ts';
import { eventually } from '../with-nats.ts';
import { finished, text } from '../with-system.ts';
import { Attack, absentJob, absentSha256 } from './attack.ts';

let attack: Attack;
before(async () => {
  attack = await Attack.start();
});
after(() => attack.stop());

describe('a reply is mapped where it leaves the tenant, and can be aimed at nothing', () => {
  const targets = [
    '$JS.API.STREAM.PURGE.JOBS',
    '$JS.API.STREAM.DELETE.SUBMISSIONS',
    '$JS.API.STREAM.PURGE.KV_jobs',
    '$JS.API.CONSUMER.DELETE.JOBS.router',
    `job.verified.acme.${absentJob}`,
    `job.cancelled.other.${absentJob}`,
    `work.bash.cpu.acme.${absentJob}`,
    `audit.other.${absentJob}.finished`,
    'audit-checkpoint',
    `$KV.jobs.other.${absentJob}`,
    '$O.plugins.C.x',
    '_INBOX_audit.x',
    'wake.bash.cpu',
  ];
  const requests: [what: string, subject: string, body: Uint8Array][] = [
    ['records', 'audit-read.acme', Buffer.from('{"what":"records"}')],
    ['a refusal', 'audit-read.acme', Buffer.from('nonsense')],
    ['an upload', `upload.acme.${absentSha256}`, new Uint8Array()],
    ['a download', `download.acme.${absentSha256}`, new Uint8Array()],
  ];
  for (const [what, subject, body] of requests)
    test(`of ${what}`, async () => {
      const untouched = await attack.quiet();
      for (const reply of targets) attack.attacker.publish(subject, body, { reply });
      await attack.attacker.flush();
      assert.deepEqual(await attack.quiet(), untouched);
    });
  test("of the stream's confirmation", async () => {
    const before = await attack.quiet();
    const recorded = await attack.recordCount();
    for (const reply of targets)
      attack.attacker.publish(`job.submitted.acme.${uuidV7()}`, Buffer.from('x'), { reply });
    await attack.attacker.flush();
    // Each is a dead letter, and gone; nothing else has changed.
    await eventually(
      'handled',
      async () => (await attack.deployment.streamState('SUBMISSIONS')).messages === 0,
    );
    const now = await attack.quiet();
    for (const name of ['JOBS', 'KV_jobs', 'KV_schemas', 'OBJ_plugins', 'OBJ_artifacts'])
      assert.equal(now[name]?.messages, before[name]?.messages, name);
    assert.equal((await attack.recordCount()) - recorded, 2 * targets.length);
    await attack.othersWork();
  });
  test('that looks like one under way is refused', async () => {
    attack.attacker.publish('audit-read.acme', Buffer.from('{}'), { reply: '_R_.abc.def' });
    await eventually('logged', () => /Reply|_R_/.test(attack.serverLog().split('\n').slice(-5).join('\n')));
  });
});

describe('message ids that collide', () => {
  test("with a service's next events suppress none of them", async () => {
    const { lastSequence } = await attack.deployment.streamState('SUBMISSIONS');
    for (let next = lastSequence; next < lastSequence + 40; next++)
      for (const what of ['verifier:verified', 'router:routed', 'executor:finished-1']) {
        const ids = headers();
        ids.set('Nats-Msg-Id', `${what}:SUBMISSIONS:${next}`);
        attack.attacker.publish(`job.submitted.acme.${uuidV7()}`, Buffer.from('x'), { headers: ids });
      }
    await attack.attacker.flush();
    await attack.othersWork();
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
      const reply = await attack.attacker.request(`job.submitted.acme.${own}`, Buffer.from('x'), {
        headers: ids,
        timeout: 5000,
      });
      assert.doesNotMatch(reply.string(), /"error"|"duplicate"/, guess);
      await eventually('the attempt is in the ledger', async () =>
        (await attack.deadLetters(own)).includes('UNDECODABLE'),
      );
    }
    const plugin = { name: 'o.sh', bytes };
    const submitted = await attack.other.submit({
      plugin,
      envelope: attack.system.sign('o.sh', bytes),
      jobId,
    });
    assert.equal(submitted.duplicate, false);
    assert.equal(text(finished(await attack.other.wait(jobId)).stdout.inline), 'unharmed\n');
    const again = await attack.other.submit({ plugin, envelope: attack.system.sign('o.sh', bytes), jobId });
    assert.equal(again.duplicate, true, 'its own repetition is still one');
  });
  test('with expectations about the stream, or an order to roll it up, are refused or ignored', async () => {
    await attack.quiet();
    const recorded = await attack.recordCount();
    for (const [name, value] of [
      ['Nats-Rollup', 'all'],
      ['Nats-Rollup', 'sub'],
      ['Nats-Expected-Last-Sequence', '0'],
      ['Nats-Expected-Stream', 'JOBS'],
    ] as const) {
      const hdrs = headers();
      hdrs.set(name, value);
      const reply = await attack.attacker.request(`job.submitted.acme.${uuidV7()}`, Buffer.from('x'), {
        headers: hdrs,
        timeout: 5000,
      });
      assert.match(reply.string(), /"error"/, name);
    }
    assert.equal(await attack.recordCount(), recorded);
    await attack.othersWork();
  });
});
