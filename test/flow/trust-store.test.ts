/** The trust store file under the running services: what comes into force, what stays, what refuses everything. */
import assert from 'node:assert/strict';
import { copyFile, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { expectValue } from '../../services/trust/fixture.ts';
import {
  generateKey,
  publicKeyToPem,
  readTrustStoreFile,
  rotateRoot,
  type TrustStoreContent,
} from '../../services/trust/index.ts';
import { eventually } from '../with-nats.ts';
import type { TestSystem } from '../with-system.ts';
import { startTestSystem } from '../with-system.ts';

let system: TestSystem;
let file = '';
before(async () => {
  system = await startTestSystem();
  file = join(system.stateDir, 'trust.json');
});
after(() => system.stop());

/** What comes of a job now: its outcome or the reason of its refusal. */
async function whatComes(): Promise<string> {
  const result = await system.run('canary.sh', `echo alive # ${Math.random()}\n`);
  return result.kind === 'rejected' ? result.event.reason : result.kind;
}

async function restart(service: 'verifier' | 'executor'): Promise<void> {
  const pid = system.system.pidOf(service);
  process.kill(pid, 'SIGKILL');
  await eventually(`${service} runs again`, () => ![0, pid].includes(system.system.pidOf(service)), 20_000);
}

async function logOf(service: string): Promise<string> {
  return readFile(join(system.stateDir, 'logs', `${service}.log`), 'utf8');
}

/** Waits until both services have said this of the file. */
const said = (what: RegExp) =>
  eventually(`verifier and executor say ${what}`, async () =>
    (await Promise.all(['verifier', 'executor'].map(logOf))).every((log) => what.test(log)),
  );

const next = (content: TrustStoreContent): TrustStoreContent => ({
  ...content,
  version: content.version + 1,
});

test('a file of a stranger leaves the old store in force, and is said loudly', async () => {
  const { trust } = system;
  await system.publishTrust(next(trust), generateKey());
  assert.equal(await whatComes(), 'finished');
  await said(/"level":"error".*TRUST_STORE_UNTRUSTED.*stays in force/);
  await system.publishTrust(next(trust));
});

test('a damaged file leaves the old store in force, and is said loudly', async () => {
  const bytes = await readFile(file);
  await writeFile(file, bytes.subarray(0, bytes.length / 2));
  assert.equal(await whatComes(), 'finished');
  await said(/"level":"error".*an unfinished string at character.*stays in force/);
  await system.publishTrust(next(system.trust));
});

test('a missing file refuses everything, and a file that comes back allows it again', async () => {
  await rename(file, `${file}.away`);
  assert.equal(await whatComes(), 'NO_TRUST_STORE');
  await rename(`${file}.away`, file);
  assert.equal(await whatComes(), 'finished');
});

test('without a pinned root everything is refused', async () => {
  const pinned = join(system.stateDir, 'root.pub');
  await rename(pinned, `${pinned}.away`);
  assert.equal(await whatComes(), 'NO_TRUST_STORE');
  await writeFile(pinned, publicKeyToPem(generateKey().publicKey));
  assert.equal(await whatComes(), 'TRUST_STORE_UNTRUSTED');
  await rename(`${pinned}.away`, pinned);
  assert.equal(await whatComes(), 'finished');
});

test('an older file changes nothing while a newer store is in force, and refuses everything after a restart', async () => {
  await copyFile(file, `${file}.old`);
  await system.publishTrust(next(system.trust));
  assert.equal(await whatComes(), 'finished');
  await copyFile(file, `${file}.new`);
  await rename(`${file}.old`, file);
  assert.equal(await whatComes(), 'finished');
  await said(/"level":"error".*TRUST_STORE_OUTDATED.*stays in force/);
  await restart('verifier');
  assert.equal(await whatComes(), 'TRUST_STORE_OUTDATED');
  await rename(`${file}.new`, file);
  assert.equal(await whatComes(), 'finished');
});

test('the same version with other content is refused', async () => {
  await copyFile(file, `${file}.right`);
  await system.publishTrust({ ...system.trust, threshold: 1, revokedDigests: ['a'.repeat(64)] });
  await restart('verifier');
  assert.equal(await whatComes(), 'TRUST_STORE_OUTDATED');
  await rename(`${file}.right`, file);
  assert.equal(await whatComes(), 'finished');
});

test('a policy with an unknown field leaves the old one in force, and refuses everything after a restart', async () => {
  const policy = join(system.stateDir, 'policy.json');
  const content = await readFile(policy, 'utf8');
  await writeFile(policy, content.replace('"memoryBytes"', '"memory": 1, "memoryBytes"'));
  assert.equal(await whatComes(), 'finished');
  await said(/"level":"error".*memory.*the old one stays in force/);
  await restart('verifier');
  assert.equal(await whatComes(), 'NO_POLICY');
  await writeFile(policy, content);
  assert.equal(await whatComes(), 'finished');
});

test('a rotated root takes over, and what the old one signs afterwards is refused', async () => {
  const nextRoot = generateKey();
  await writeFile(
    `${file}.new`,
    rotateRoot(expectValue(readTrustStoreFile(await readFile(file))), system.root, nextRoot),
  );
  await rename(`${file}.new`, file);
  assert.equal(await whatComes(), 'finished');
  await said(new RegExp(`"rootKeyId":"${nextRoot.keyId}".*trust store in force`));
  await system.publishTrust({ ...system.trust, version: 999 });
  await restart('verifier');
  await restart('executor');
  assert.equal(await whatComes(), 'TRUST_STORE_OUTDATED');
});
