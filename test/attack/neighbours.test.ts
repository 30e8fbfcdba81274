/** A tenant that knows the ids and digests of another one. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { headers } from 'nats';
import { uuidV7 } from '../../services/client/index.ts';
import type { JobSubmitted } from '../../services/platform/codec.ts';
import { decodeAs, encode } from '../../services/platform/codec.ts';
import { eventually } from '../with-nats.ts';
import { finished, sha256, text } from '../with-system.ts';
import { Attack } from './attack.ts';

let attack: Attack;
before(async () => {
  attack = await Attack.start();
});
after(() => attack.stop());

describe('what belongs to another tenant', () => {
  const script = Buffer.from('echo secret > /job/out/secret; echo secret; sleep 0.3\n');
  let job: string;
  let artifact: string;
  before(async () => {
    const submitted = await attack.other.submit({
      plugin: { name: 's.sh', bytes: script },
      envelope: attack.system.sign('s.sh', script),
    });
    job = submitted.jobId;
    artifact = finished(await attack.other.wait(job)).artifacts[0]?.sha256 ?? '';
  });
  const ask = async (body: object) => {
    const reply = await attack.attacker.request('audit-read.acme', JSON.stringify(body), { timeout: 5000 });
    return reply.data;
  };
  test('its records and output cannot be read', async () => {
    for (const what of ['records', 'logs'])
      assert.deepEqual(decodeAs('AuditPage', await ask({ what, jobId: job })).items, []);
    for (const what of ['jobs', 'spans'])
      assert.equal(Buffer.from(await ask({ what, jobId: job })).includes(job), false);
  });
  test('a tenant named in the body is not believed', async () => {
    const reply = await attack.attacker.request('audit-read.acme', '{"what":"records","tenant":"other"}');
    assert.equal(reply.headers?.get('Sandbus-Error'), 'BAD_REQUEST');
  });
  test('its artifacts cannot be downloaded', async () => {
    const reply = await attack.attacker.request(`download.acme.${artifact}`, '', { timeout: 5000 });
    assert.equal(reply.headers?.get('Sandbus-Error'), 'NOT_FOUND');
  });
  test('its uploads are neither seen nor used, although the digest is known and its jobs have brought them here', async () => {
    const input = Buffer.concat([Buffer.from('their secret\n'), Buffer.alloc(600_000)]);
    const reader = Buffer.from('head -1 secret.txt\n');
    const plugin = { name: 'reader.sh', bytes: reader };
    const envelope = attack.system.sign('reader.sh', reader);
    const theirs = await attack.other.submit({
      plugin,
      envelope,
      inputs: [{ name: 'secret.txt', bytes: input }],
    });
    assert.equal(text(finished(await attack.other.wait(theirs.jobId)).stdout.inline), 'their secret\n');
    const digest = sha256(input);

    const progress = headers();
    progress.set('Sandbus-Size', String(input.length));
    progress.set('Sandbus-Offset', '0');
    const asked = await attack.attacker.request(`upload.acme.${digest}`, '', {
      headers: progress,
      timeout: 5000,
    });
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
    await attack.attacker.request(`job.submitted.acme.${jobId}`, encode('JobSubmitted', job), {
      timeout: 5000,
    });
    const result = await attack.system.client.wait(jobId);
    assert.equal(result.kind === 'rejected' && result.event.reason, 'PLUGIN_UNAVAILABLE');
    assert.match(result.kind === 'rejected' ? result.event.detail : '', /input "secret.txt": tenant acme/);
  });
  test('its live records are not heard', async () => {
    const heard: string[] = [];
    attack.attacker.subscribe('audit.acme.>', { callback: (_, message) => void heard.push(message.subject) });
    attack.attacker.subscribe('audit-checkpoint', { callback: () => undefined });
    await attack.othersWork();
    assert.deepEqual(
      heard.filter((subject) => !subject.startsWith('audit.acme.')),
      [],
    );
  });
  test('a submission in its name on an own subject is a dead letter', async () => {
    const jobId = uuidV7();
    const cancel = { tenant: 'other', jobId: job, requestedAt: 1, requestedBy: 'me', reason: '' };
    await attack.attacker.request(`job.cancel-requested.acme.${jobId}`, encode('JobCancelRequested', cancel));
    await eventually('it is in the ledger', async () =>
      (await attack.deadLetters(jobId)).includes('SUBJECT_MISMATCH'),
    );
  });
  test('its running job cannot be cancelled under its id', async () => {
    const bytes = Buffer.from('sleep 1; echo done\n');
    const { jobId } = await attack.other.submit({
      plugin: { name: 'w.sh', bytes },
      envelope: attack.system.sign('w.sh', bytes),
    });
    const cancel = { tenant: 'acme', jobId, requestedAt: 1, requestedBy: 'me', reason: '' };
    await attack.attacker.request(`job.cancel-requested.acme.${jobId}`, encode('JobCancelRequested', cancel));
    assert.equal(text(finished(await attack.other.wait(jobId)).stdout.inline), 'done\n');
  });
  test('a job of the same id is another job', async () => {
    await attack.attacker.request(`job.submitted.acme.${job}`, Buffer.from('x'));
    await eventually('it is a dead letter', async () =>
      (await attack.deadLetters(job)).includes('UNDECODABLE'),
    );
    assert.equal((await attack.other.job(job))?.state, 'finished');
  });
});
