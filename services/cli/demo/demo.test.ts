import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { eventually } from '../../../test/with-nats.ts';
import { processesWith } from '../../../test/with-system.ts';
import { installation } from '../../platform/config.ts';
import { readAll, startChild } from '../../platform/process.ts';

it('Ctrl-C in the middle of the demo leaves no process and no file behind', { timeout: 60_000 }, async () => {
  const folder = await mkdtemp(join(tmpdir(), 'sandbus-demo-test-'));
  const child = await startChild(join(installation.root, 'services/cli/sandbus'), ['demo', '--json'], {
    env: { PATH: '/usr/local/bin:/usr/bin:/bin', HOME: folder, TMPDIR: folder },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const output = Promise.all([readAll(child.stdout), readAll(child.stderr)]);
  await eventually('services run', async () => (await processesWith(folder)).length > 0, 30_000);
  child.kill('SIGINT');
  const { code } = await child.exited;
  const [stdout, stderr] = await output;
  assert.equal(code, 130, stderr.toString());
  assert.equal(stdout.toString(), '');
  assert.deepEqual(await processesWith(folder), []);
  assert.deepEqual(
    (await readdir(folder)).filter((name) => name.startsWith('sandbus-')),
    [],
  );
  await rm(folder, { recursive: true, force: true });
});
