/** A lock between processes. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { startChild } from './process.ts';
import { holdLock } from './process-lock.ts';

const folder = mkdtempSync(join(tmpdir(), 'sandbus-lock-'));
after(() => rmSync(folder, { recursive: true }));

const holder = (file: string) => `
  import { holdLock } from '${join(import.meta.dirname, 'process-lock.ts')}';
  console.log(holdLock('${file}') !== null);
  setInterval(() => undefined, 1000);
`;

test('one process holds it; another gets it when that one has let go, or was killed', async () => {
  const file = join(folder, 'a.lock');
  const first = holdLock(file);
  assert.notEqual(first, null);
  assert.equal(holdLock(file), null);
  first?.close();
  first?.close();
  const args = ['--input-type=module', '--eval', holder(file)];
  const child = await startChild(process.execPath, args, { env: {}, stdio: ['ignore', 'pipe', 'inherit'] });
  for await (const said of child.stdout ?? []) {
    assert.equal(String(said), 'true\n');
    break;
  }
  assert.equal(holdLock(file), null);
  child.kill('SIGKILL');
  await child.exited;
  const last = holdLock(file);
  assert.notEqual(last, null, 'a lock is never stale');
  last?.close();
});
