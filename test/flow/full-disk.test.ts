/**
 * The disk of the NATS server is full, and then it is not: readiness and doctor say what is wrong, and `up` brings the
 * server back when there is room. (2.9 stands still, 2.10 refuses, 2.15 refuses for some streams until it is started
 * again.) The disk is a small tmpfs, which takes root to mount.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { checkJetStream, checkStorage } from '../../services/cli/checks.ts';
import { userCredentials } from '../../services/platform/access-paths.ts';
import { everyService } from '../../services/platform/fixture.ts';
import { Health } from '../../services/platform/health.ts';
import { Bus } from '../../services/platform/nats/bus.ts';
import { inboxPrefix } from '../../services/platform/nats-permissions.ts';
import { eventually } from '../with-nats.ts';
import type { TestSystem } from '../with-system.ts';
import { finished, startTestSystem, text } from '../with-system.ts';

const isRoot = process.getuid?.() === 0;
let system: TestSystem;
let verifier: Bus;
let disk: string;
const events: string[] = [];
before(async () => {
  if (!isRoot) return;
  const options = {
    sizeFactor: 0.01,
    serverPatienceMs: 15_000,
    onEvent: (line: string) => void events.push(line),
  };
  system = await startTestSystem({}, options, (stateDir) => {
    disk = join(stateDir, 'nats');
    mkdirSync(disk);
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=160M', 'sandbus-test', disk]);
  });
  verifier = await Bus.connect({
    ...{ url: system.url, name: 'verifier', inboxPrefix: inboxPrefix('verifier') },
    ...{
      credentials: userCredentials(system.stateDir, 'verifier'),
      identity: await everyService(system.stateDir),
    },
  });
});
after(async () => {
  if (!isRoot) return;
  await verifier.close();
  await system.client.close();
  await system.system.stop();
  execFileSync('umount', ['-l', disk]);
  await system.stop();
});

const ballast = () => join(disk, 'ballast');

/** Takes every byte that is left. */
function fillDisk(): void {
  mkdirSync(ballast());
  for (const bytes of [1 << 23, 1 << 20, 1 << 16, 1 << 12])
    for (let part = 0; ; part++)
      try {
        writeFileSync(join(ballast(), `${bytes}-${part}`), Buffer.alloc(bytes));
      } catch {
        break;
      }
}

/** A service says something of ordinary size, and waits for the confirmation. */
const says = () =>
  verifier.publish('trace.verifier', Buffer.alloc(100_000)).then(
    () => true,
    () => false,
  );

const doctor = async () => [
  await checkJetStream(system.client),
  ...(await checkStorage(system.url, system.stateDir)),
];

test('a full disk: readiness and doctor say so, the server comes back when there is room, and jobs run', {
  skip: isRoot ? false : 'mounting a tmpfs takes root',
  timeout: 120_000,
}, async () => {
  const health = new Health('verifier', verifier);
  health.watch([]);
  assert.deepEqual((await health.report()).reasons, []);
  assert.deepEqual(
    (await doctor()).map(({ ok }) => ok),
    [true, true],
  );

  fillDisk();
  await eventually('a write is refused', async () => !(await says()), 30_000);
  const { ready, reasons } = await health.report();
  assert.equal(ready, false);
  assert.match(reasons.join(), /is not stored|NATS has not answered/);
  await eventually('doctor says so', async () => (await doctor()).some(({ ok }) => !ok), 30_000);
  await eventually('up says so', () => events.some((line) => /cannot store.*make room/.test(line)), 40_000);

  rmSync(ballast(), { recursive: true });
  await eventually('up starts it again', () => events.some((line) => /starting it again/.test(line)), 40_000);
  await eventually('a write comes through', says, 40_000);
  assert.equal(text(finished(await system.run('after.sh', 'echo room\n')).stdout.inline), 'room\n');
  assert.equal((await checkJetStream(system.client)).ok, true);
});
