import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { WorkFolder } from './work-folder.ts';

const job = { tenant: 'acme', jobId: '01a22b86-a136-78cf-9585-bc587095230f' };

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'sandbus-work-'));
});
afterEach(() => rm(root, { recursive: true }));

const open = (executor = 'one') => WorkFolder.open(root, executor, hostname());

describe('work folder', () => {
  it('a try that cleans up late takes nothing from the next try of the same attempt', async () => {
    const folder = await open();
    const first = await folder.forAttempt(job, 1);
    const second = await folder.forAttempt(job, 1);
    await writeFile(second.plugin, 'second');
    await first.remove();
    assert.ok((await stat(second.out)).isDirectory());
    assert.deepEqual((await readdir(second.path)).sort(), ['inputs', 'out', 'plugin']);
  });

  it('a start removes what dead executors of this host left, and nothing of another host', async () => {
    const dead = { pid: 1, startTicks: 'long ago' };
    for (const [name, host] of [
      ['dead', hostname()],
      ['elsewhere', 'another-host'],
    ] as const) {
      await mkdir(join(root, name));
      await writeFile(join(root, name, 'owner.json'), JSON.stringify({ ...dead, hostname: host }));
    }
    await open();
    assert.deepEqual((await readdir(root)).sort(), ['elsewhere', 'one']);
  });

  it('a second executor of the same name is refused, with what to change', async () => {
    await open();
    await assert.rejects(open(), /name one runs already \(process \d+ .*SANDBUS_EXECUTOR_ID/);
  });
});
