/** A revocation ends what runs, and refuses what waits, soon and for this reason. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { SubmitRequest } from '../../services/client/index.ts';
import type { SigningKey } from '../../services/trust/index.ts';
import {
  formatInstant,
  generateKey,
  publicKeyToPem,
  withKey,
  withRevokedDigest,
  withRevokedKey,
} from '../../services/trust/index.ts';
import { eventually } from '../with-nats.ts';
import type { TestSystem } from '../with-system.ts';
import { finished, processesWith, sha256, startTestSystem, text } from '../with-system.ts';

const dayMs = 86_400_000;
const dismissed = generateKey();

let system: TestSystem;
before(async () => {
  // One slot, so that a second job waits while the first runs.
  system = await startTestSystem({ SANDBUS_SLOTS: '1' });
  const scope = { plugins: ['*'], tenants: ['*'], gpu: false, network: false };
  const [notBefore, expires] = [formatInstant(Date.now() - dayMs), formatInstant(Date.now() + dayMs)];
  const publicKey = publicKeyToPem(dismissed.publicKey);
  await system.publishTrust(
    withKey(system.trust, { publicKey, owner: 'dismissed', scope, notBefore, expires }),
  );
});
after(() => system.stop());

const canary = 'echo alive > /job/out/canary; echo alive\n';

async function submit(name: string, source: string, key?: SigningKey, request: Partial<SubmitRequest> = {}) {
  const bytes = Buffer.from(source);
  const envelope = system.sign(name, bytes, {}, key);
  return (await system.client.submit({ plugin: { name, bytes }, envelope, ...request })).jobId;
}

/** A job that runs until it is killed, seen in the list of processes. */
async function startSleeper(marker: string, key?: SigningKey): Promise<{ jobId: string; source: string }> {
  const source = `(setsid sleep ${marker} &); sleep ${marker}\n`;
  const jobId = await submit('sleeper.sh', source, key, { limits: { wallMs: 60_000 } });
  await eventually('it runs', async () => (await processesWith(`sleep\0${marker}`)).length >= 2);
  return { jobId, source };
}

async function isRouted(jobId: string): Promise<boolean> {
  return (await system.client.job(jobId))?.state === 'routed';
}

async function expectRevoked(jobId: string): Promise<void> {
  const result = await system.client.wait(jobId, { signal: AbortSignal.timeout(10_000) });
  assert.equal(result.kind === 'rejected' ? result.event.reason : result.kind, 'REVOKED');
  const kinds: string[] = [];
  for await (const { record } of system.client.records({ jobId, follow: false })) kinds.push(record.kind);
  assert.ok(!kinds.includes('started'), `it started: ${kinds.join(' ')}`);
}

test('jobs that wait are refused while another runs on; the one whose plugin is revoked then is ended', async () => {
  const running = await startSleeper('765.1');
  const byDigest = await submit('canary.sh', canary);
  const byKey = await submit('canary.sh', `${canary}# by the other key\n`, dismissed);
  const untouched = await submit('canary.sh', `${canary}# by nobody revoked\n`);
  await eventually('they wait', async () =>
    (await Promise.all([byDigest, byKey, untouched].map(isRouted))).every(Boolean),
  );

  await system.publishTrust(withRevokedDigest(system.trust, sha256(Buffer.from(canary))));
  await expectRevoked(byDigest);
  await system.publishTrust(withRevokedKey(system.trust, dismissed.keyId));
  await expectRevoked(byKey);
  assert.equal((await system.client.job(running.jobId))?.state, 'started');

  await system.publishTrust(withRevokedDigest(system.trust, sha256(Buffer.from(running.source))));
  const ended = finished(await system.client.wait(running.jobId));
  assert.deepEqual([ended.outcome, ended.error?.step], ['cancelled', 'revoked']);
  assert.deepEqual(await processesWith('765.1'), []);

  assert.equal(text(finished(await system.client.wait(untouched)).stdout.inline), 'alive\n');
});

test('a job whose signer is no longer listed is ended too', async () => {
  const { jobId } = await startSleeper('765.2');
  const [first] = system.trust.keys;
  assert.ok(first !== undefined);
  const { keys } = system.trust;
  await system.publishTrust({ ...system.trust, version: system.trust.version + 1, keys: keys.slice(1) });
  const ended = finished(await system.client.wait(jobId));
  assert.deepEqual([ended.outcome, ended.error?.step], ['cancelled', 'revoked']);
  assert.deepEqual(await processesWith('765.2'), []);
  await system.publishTrust({ ...system.trust, version: system.trust.version + 1, keys });
});

test('a job that waits is revoked although no verifier runs at that moment', async () => {
  const running = await startSleeper('765.3');
  const source = `${canary}# revoked without a verifier\n`;
  const waiting = await submit('canary.sh', source);
  await eventually('it waits', () => isRouted(waiting));
  process.kill(system.system.pidOf('verifier'), 'SIGKILL');
  await system.publishTrust(withRevokedDigest(system.trust, sha256(Buffer.from(source))));
  await system.client.cancel(running.jobId, 'make room');
  await expectRevoked(waiting);
});
