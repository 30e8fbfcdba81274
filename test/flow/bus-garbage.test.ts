/** What strangers put on the bus harms nobody: it becomes a dead letter or a clear error, and the next job runs. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { connect as natsConnect, nkeyAuthenticator } from 'nats';
import { deadLettersOfAll } from '../../services/cli/dead-letters-operator.ts';
import { uuidV7 } from '../../services/client/index.ts';
import { userCredentials } from '../../services/platform/access-paths.ts';
import { encode } from '../../services/platform/codec.ts';
import { Bus } from '../../services/platform/nats/bus.ts';
import { inboxPrefix } from '../../services/platform/nats-permissions.ts';
import { eventually } from '../with-nats.ts';
import type { TestSystem } from '../with-system.ts';
import { connectAsDeployment, finished, startTestSystem, text } from '../with-system.ts';

let system: TestSystem;
/** A tenant with a mind of its own. */
let bus: Bus;
let deployment: Bus;
before(async () => {
  system = await startTestSystem();
  bus = await Bus.connect({
    url: system.url,
    name: 'stranger',
    credentials: system.system.credentialsOf('acme'),
  });
  deployment = await connectAsDeployment(system);
});
after(async () => {
  await bus.close();
  await deployment.close();
  await system.stop();
});

async function nextJobRuns(): Promise<void> {
  const result = finished(await system.run('next.sh', 'echo still here\n'));
  assert.equal(text(result.stdout.inline), 'still here\n');
}

/** The reason of the dead letter that the ledger has for this job. */
async function deadLetterReason(jobId: string): Promise<string> {
  for await (const { record, event } of system.client.records({ jobId }))
    if (record.kind === 'dead-lettered' && event?.name === 'JobDeadLettered') return event.value.reason;
  return 'none';
}

const cancel = (jobId: string) =>
  encode('JobCancelRequested', { tenant: 'acme', jobId, requestedAt: 1, requestedBy: 'x', reason: '' });

const garbage: [what: string, reason: string, bytes: (jobId: string) => Uint8Array][] = [
  ['no bytes at all', 'UNDECODABLE', () => new Uint8Array()],
  ['text', 'UNDECODABLE', () => Buffer.from('{"plugin":"x"}')],
  ['an unknown schema', 'UNKNOWN_SCHEMA', () => Buffer.from(`c301${'ab'.repeat(8)}00`, 'hex')],
  ['another event', 'WRONG_EVENT', cancel],
  ['800 KiB of 0x7f', 'UNDECODABLE', () => Buffer.alloc(800 * 1024, 0x7f)],
];
for (const [what, reason, bytes] of garbage)
  test(`${what} on job.submitted: ${reason}, and the next job runs`, async () => {
    const jobId = uuidV7();
    await bus.publish(`job.submitted.acme.${jobId}`, bytes(jobId));
    assert.equal(await deadLetterReason(jobId), reason);
    await nextJobRuns();
  });

test('subjects with wrong tokens are dead letters, and the next job runs', async () => {
  for (const subject of [
    'job.submitted.acme.not-a-uuid',
    'job.submitted.acme.x.y.z',
    'job.cancel-requested.acme.-',
  ])
    await bus.publish(subject, cancel(uuidV7()));
  await nextJobRuns();
});

test('a second submission of a job id is a dead letter; the first runs once', async () => {
  const bytes = Buffer.from('echo once\n');
  const request = {
    plugin: { name: 'once.sh', bytes },
    envelope: system.sign('once.sh', bytes),
    jobId: uuidV7(),
  };
  await system.client.submit(request);
  // Another submission of the same id, not a repetition of the same message.
  const stored = await deployment.nextMessage('SUBMISSIONS', 1, `job.submitted.acme.${request.jobId}`);
  if (stored !== null) await bus.publish(stored.subject, stored.data, { id: 'another' });
  else await bus.publish(`job.submitted.acme.${request.jobId}`, cancel(request.jobId));
  const result = finished(await system.client.wait(request.jobId));
  assert.equal(text(result.stdout.inline), 'once\n');
  assert.match(await deadLetterReason(request.jobId), /DUPLICATE_JOB|WRONG_EVENT/);
  const kinds: string[] = [];
  for await (const { record } of system.client.records({ jobId: request.jobId, follow: false }))
    kinds.push(record.kind);
  assert.equal(kinds.filter((kind) => kind === 'started').length, 1);
  assert.equal(kinds.filter((kind) => kind === 'finished').length, 1);
});

test('dead letters are listed and shown; a submission among them is sent again under a new id', async () => {
  const bytes = Buffer.from('echo second chance\n');
  const request = { plugin: { name: 'again.sh', bytes }, envelope: system.sign('again.sh', bytes) };
  const { jobId } = await system.client.submit(request);
  finished(await system.client.wait(jobId));
  let submission = new Uint8Array();
  for await (const { record } of system.client.records({ jobId, follow: false }))
    if (record.kind === 'submitted') submission = Buffer.from(record.payload ?? []);
  // The same job again, as if its submitter had forgotten that it had submitted it.
  await bus.publish(`job.submitted.acme.${jobId}`, submission, { id: 'forgetful' });
  assert.equal(await deadLetterReason(jobId), 'DUPLICATE_JOB');
  const letters = [];
  for await (const letter of system.client.deadLetters()) letters.push(letter);
  const [last] = letters.filter(({ letter }) => letter.jobId === jobId);
  assert.ok(last);
  assert.equal((await system.client.deadLetter(last.sequence))?.letter.reason, 'DUPLICATE_JOB');
  const replayed = await system.client.replay(last);
  assert.notEqual(replayed.jobId, jobId);
  assert.equal(text(finished(await system.client.wait(replayed.jobId)).stdout.inline), 'second chance\n');
  const garbled = letters.find(({ letter }) => letter.reason === 'UNDECODABLE');
  assert.ok(garbled);
  await assert.rejects(system.client.replay(garbled), /no submission/);
});

test('what belongs to no tenant is listed for the operator, beside the dead letters of all', async () => {
  const verifier = await Bus.connect({
    ...{ url: system.url, name: 'verifier', inboxPrefix: inboxPrefix('verifier') },
    credentials: userCredentials(system.stateDir, 'verifier'),
  });
  await verifier.publish('trace.verifier', Buffer.from('no spans, and nobody signed them'));
  await verifier.close();
  const config = { natsUrl: system.url, stateDir: system.stateDir };
  await eventually('listed', async () =>
    (await deadLettersOfAll(config)).some(
      ({ letter }) => letter.tenant === '-' && letter.subject === 'trace.verifier',
    ),
  );
  const tenants = new Set((await deadLettersOfAll(config)).map(({ letter }) => letter.tenant));
  assert.deepEqual([...tenants].sort(), ['-', 'acme']);
  await assert.rejects(deadLettersOfAll({ ...config, stateDir: '/nonexistent' }), /are the operator's/);
});

test('2 MiB in one message: our client says so before sending; the server drops a stranger, services stay up', async () => {
  const subject = `job.submitted.acme.${uuidV7()}`;
  await assert.rejects(bus.publish(subject, Buffer.alloc(2 << 20)), { code: 'TOO_LARGE' });
  const seed = /^SU\w+$/m.exec(readFileSync(system.system.credentialsOf('acme'), 'utf8'))?.[0] ?? '';
  const authenticator = nkeyAuthenticator(Buffer.from(seed));
  const stranger = await natsConnect({ servers: system.url, reconnect: false, authenticator });
  const gone = stranger.closed();
  assert.throws(() => stranger.publish(subject, Buffer.alloc(2 << 20)), /MAX_PAYLOAD/);
  await stranger.close();
  await gone;
  await nextJobRuns();
});

test('a cancel of a job that never was becomes a dead letter', async () => {
  const jobId = uuidV7();
  await bus.publish(`job.cancel-requested.acme.${jobId}`, cancel(jobId));
  await nextJobRuns();
});
