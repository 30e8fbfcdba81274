/** What is done about a server that cannot store; test/flow/full-disk.test.ts has one whose disk is full. */
import assert from 'node:assert/strict';
import { appendFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { ServerFacts } from './server-watch.ts';
import { decideServer, LogTail } from './server-watch.ts';

const gibibyte = 1024 ** 3;
const well: ServerFacts = { complaint: null, silentMs: 1_000, freeBytes: gibibyte };
const full = 'JetStream out of resources, will be DISABLED';

const cases: [what: string, facts: Partial<ServerFacts>, kind: string][] = [
  ['a server that answers', {}, 'well'],
  ['a server that answers on a disk that is nearly full', { freeBytes: 0 }, 'well'],
  ['one that stands still for a moment', { silentMs: 30_000 }, 'well'],
  ['one that stands still', { silentMs: 60_000 }, 'restart'],
  ['one that stands still, and its disk is full', { silentMs: 60_000, freeBytes: 0 }, 'wait'],
  ['one that has said that its disk was full', { complaint: full }, 'restart'],
  ['one that has said that its disk is full', { complaint: full, freeBytes: 1024 }, 'wait'],
];
for (const [what, facts, kind] of cases)
  test(`${what}: ${kind}`, () => assert.equal(decideServer({ ...well, ...facts }).kind, kind));

test('of a log the new lines count, also when it was begun anew', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'sandbus-log-'));
  const file = join(folder, 'log');
  const line = (text: string) => `[7] 2026/01/02 03:04:05.678901 [ERR] ${text}\n`;
  try {
    const tail = new LogTail(file);
    assert.equal(await tail.complaint(), null);
    await writeFile(file, line(full));
    assert.equal(await tail.complaint(), `[ERR] ${full}`);
    assert.equal(await tail.complaint(), null);
    await appendFile(file, line('Server is ready'));
    assert.equal(await tail.complaint(), null);
    await writeFile(file, line('write x.blk: no space left on device'));
    assert.match((await tail.complaint()) ?? '', /no space left/);
  } finally {
    await rm(folder, { recursive: true });
  }
});
