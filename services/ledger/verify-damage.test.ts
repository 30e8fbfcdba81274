/** Damage below the rows: a byte of the database file that changes anything of the ledger never goes unnoticed. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { messageOf, UsageError } from '../platform/errors.ts';
import { stores } from './fixture.ts';
import { openReader } from './open.ts';
import type { LedgerReader } from './store.ts';
import type { MemoryLog } from './tlog/fixture.ts';
import { verifyLedger } from './verify.ts';
import { fill } from './verify-fixture.ts';

/** Some hundred places, in every part of the file. */
const places = 200;
const size = 260;

const store = stores().find(({ name }) => name === 'SQLite') ?? assert.fail();
let log: MemoryLog;
let whole: Buffer;
let file: string;
before(async () => {
  file = await store.make();
  log = await fill(file, size, [100, 256]);
  whole = readFileSync(file);
});
after(store.stop);

/** All that verification vouches for. */
async function contentOf(reader: LedgerReader): Promise<string> {
  const records = await reader.records(0, { records: 2 * size, bytes: 1e9 });
  const covered = records.map(({ signature, traceparent, stream, streamSequence, ...rest }) => rest);
  return JSON.stringify([covered, await reader.subtrees(8, 0, 9), await reader.checkpoints(0, 9)]);
}

/** What verification says, or how it ends. */
async function verdict(content: Buffer): Promise<{ ok: boolean; said: string; content: string }> {
  writeFileSync(file, content);
  try {
    const reader = await openReader(file);
    try {
      const { ok, findings } = await verifyLedger(reader, { key: log.verifierKey });
      const said = findings.map(({ fault }) => fault).join('\n');
      return { ok, said, content: await contentOf(reader).catch(messageOf) };
    } finally {
      await reader.close();
    }
  } catch (error) {
    if (!(error instanceof UsageError) && !isRefusal(error)) throw error;
    return { ok: false, said: messageOf(error), content: '' };
  }
}

/** SQLite itself, when not even the list of tables can be read. */
const isRefusal = (error: unknown): boolean => error instanceof Error && 'errcode' in error;

test('a changed byte is found wherever it changes the ledger', async () => {
  const before = await verdict(whole);
  assert.deepEqual([before.ok, before.said], [true, '']);
  let found = 0;
  for (let place = 0; place < places; place += 1) {
    const at = Math.floor((whole.length / places) * place) + (place % 97);
    const changed = Buffer.from(whole);
    changed.writeUInt8(changed.readUInt8(at) ^ (1 << (place % 8)), at);
    const after = await verdict(changed);
    if (after.ok) assert.equal(after.content, before.content, `byte ${at} of ${whole.length}`);
    else found += 1;
  }
  assert.ok(found > places / 4, `${found} of ${places} were found`);
});
