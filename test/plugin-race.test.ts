/**
 * The file of a plugin is swapped again and again while the launcher starts it: it runs the bytes with the digest that it
 * was given, or none. This is the last step of verification, and it needs no luck: what is hashed is the copy that runs.
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { installation } from '../services/platform/config.ts';
import { runChild } from '../services/platform/process.ts';

const tries = 1000;
/** Large enough to be read in pieces, so that a half-written file is seen too. */
const padding = `${'#'.repeat(99)}\n`.repeat(1000);
const right = `echo right\n${padding}exit 0\n`;
const wrong = `echo WRONG\n${padding}exit 9\n`;
const sha256 = createHash('sha256').update(right).digest('hex');

let folder = '';
let plugin = '';
before(() => {
  folder = mkdtempSync(join(tmpdir(), 'sandbus-race-'));
  plugin = join(folder, 'plugin.sh');
  writeFileSync(plugin, right);
});
after(() => rmSync(folder, { recursive: true }));

/** Writes both, in turn, until it is ended: over the old bytes, and by renaming another file into place. */
const writer = `
  const { openSync, writeSync, closeSync, renameSync, writeFileSync } = require('node:fs');
  const { workerData: { plugin, contents, go } } = require('node:worker_threads');
  for (let round = 0; Atomics.load(go, 0) === 1; round += 1) {
    const content = contents[round % 2];
    if (round % 8 < 4) {
      const file = openSync(plugin, 'r+');
      for (let at = 0; at < content.length; at += 8192) writeSync(file, content.slice(at, at + 8192), at);
      closeSync(file);
    } else {
      writeFileSync(plugin + '.new', content);
      renameSync(plugin + '.new', plugin);
    }
    Atomics.wait(go, 0, 1, Math.random() * 3);
  }
`;

async function startOnce(): Promise<string> {
  const asked = ['--plugin', plugin, '--plugin-name', 'plugin.sh', '--plugin-sha256', sha256];
  const args = ['run', ...asked, '--', '/usr/bin/bash', '/plugin/plugin.sh'];
  const { code, stdout, stderr } = await runChild(installation.launcher, args, { PATH: '/usr/bin:/bin' });
  const result = JSON.parse(stderr.toString().trimEnd().split('\n').at(-1) ?? '{}');
  if (code === 0 && stdout.toString() === 'right\n') return 'right';
  assert.equal(stdout.toString(), '', 'other bytes ran');
  assert.equal(code, 125, stderr.toString());
  assert.equal(result.outcome, 'setup-failed');
  return result.error.step;
}

test(`${tries} starts against a racing writer`, { timeout: 300_000 }, async () => {
  const go = new Int32Array(new SharedArrayBuffer(4)).fill(1);
  const worker = new Worker(writer, { eval: true, workerData: { plugin, contents: [right, wrong], go } });
  const seen: Record<string, number> = {};
  try {
    let left = tries;
    const lane = async () => {
      while (left-- > 0) {
        const what = await startOnce();
        seen[what] = (seen[what] ?? 0) + 1;
      }
    };
    await Promise.all(Array.from({ length: 4 }, lane));
  } finally {
    Atomics.store(go, 0, 0);
    await new Promise((resolve) => worker.once('exit', resolve));
  }
  const { right: ran = 0, 'plugin-digest': refused = 0, ...others } = seen;
  assert.deepEqual(others, {}, 'no start ends otherwise');
  assert.ok(ran > 20 && refused > 20, `both happened: ${ran} ran, ${refused} were refused`);
});
