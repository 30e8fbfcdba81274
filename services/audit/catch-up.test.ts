/** An older database gets back what AUDIT has kept, or is refused: history is never forked. */
import assert from 'node:assert/strict';
import { copyFile, rm } from 'node:fs/promises';
import { DatabaseSync } from 'node:sqlite';
import { after, describe, test } from 'node:test';
import { logKeyFiles, readVerifierKey } from '../ledger/log-key.ts';
import { openReader } from '../ledger/open.ts';
import { openCheckpoint } from '../ledger/tlog/checkpoint.ts';
import { decodeAs } from '../platform/codec.ts';
import { subjects } from '../platform/topology.ts';
import type { Fixture } from './fixture.ts';
import { cancelled, eventually, feed, fixture, newJob, say, stopTelemetry, submit } from './fixture.ts';

after(stopTelemetry);

const hex = (bytes: Uint8Array | undefined) => Buffer.from(bytes ?? []).toString('hex');

/** Jobs, each with its end; and the feed with a checkpoint of all of it. */
async function fill(f: Fixture, jobs: number): Promise<void> {
  const { length } = await feed(f.bus);
  const service = await f.startAudit();
  for (let i = 0; i < jobs; i++) {
    const job = newJob();
    await say(f.bus, job, 'cancelled', cancelled(job), await submit(f.bus, job));
  }
  await eventually('a checkpoint of everything', async () => (await checkpointSize(f)) === length + 2 * jobs);
  await service.stop();
}

async function checkpointSize(f: Fixture): Promise<number> {
  const message = await f.bus.lastMessage('AUDIT', subjects.auditCheckpoint);
  return message === null ? 0 : decodeAs('AuditCheckpoint', message.data).treeSize;
}

async function leaves(f: Fixture): Promise<string[]> {
  const reader = await openReader(f.ledgerFile);
  const records = await reader.records(0, { records: 1000, bytes: 1e9 });
  await reader.close();
  return records.map(({ leafHash }) => hex(leafHash));
}

/** The ledger as it was after the first jobs, and AUDIT with more. */
async function restored(f: Fixture): Promise<string[]> {
  await fill(f, 3);
  const copy = `${f.ledgerFile}.copy`;
  await copyFile(f.ledgerFile, copy);
  await fill(f, 3);
  const all = await leaves(f);
  for (const suffix of ['', '-wal', '-shm']) await rm(`${f.ledgerFile}${suffix}`, { force: true });
  await copyFile(copy, f.ledgerFile);
  return all;
}

test('checkpoints are signed by the log and come after what they cover', async () => {
  await using f = await fixture();
  await fill(f, 2);
  const key = readVerifierKey(logKeyFiles(f.stateDir).verifierKey);
  const message = await f.bus.lastMessage('AUDIT', subjects.auditCheckpoint);
  const { note, treeSize, rootHash, origin } = decodeAs('AuditCheckpoint', message?.data ?? new Uint8Array());
  const opened = openCheckpoint(note, key);
  assert.ok(opened.ok);
  assert.deepEqual(
    [opened.value.size, hex(opened.value.root), opened.value.origin],
    [treeSize, hex(rootHash), origin],
  );
  const last = await f.bus.lastMessage('AUDIT', 'audit.>');
  assert.ok((message?.sequence ?? 0) > (last?.sequence ?? 0));
  const reader = await openReader(f.ledgerFile);
  const stored = await reader.newestCheckpoint();
  await reader.close();
  assert.equal(hex(stored?.note), hex(note));
});

test('an older ledger is refilled, exactly, and goes on', async () => {
  await using f = await fixture();
  const all = await restored(f);
  await fill(f, 1);
  assert.deepEqual((await leaves(f)).slice(0, all.length), all);
  assert.deepEqual(
    (await feed(f.bus)).map(({ ledgerSequence }) => ledgerSequence),
    Array.from({ length: all.length + 2 }, (_, i) => i),
  );
  const submissions = async () => (await f.bus.streamState('JOBS')).messages;
  assert.equal(await submissions(), 0);
});

describe('an older ledger is refused', () => {
  const faults: [what: string, spoil: (f: Fixture) => Promise<unknown>, message: RegExp][] = [
    [
      'when AUDIT has lost a record',
      async (f) => {
        const lost = await eventually('record 8', async () => findRecord(f, 8));
        await f.bus.deleteMessage('AUDIT', lost);
      },
      /AUDIT has record 11, the ledger only [0-9]+ records.*record 9 of AUDIT comes where 8 is next/s,
    ],
    [
      'when something in AUDIT is not by audit',
      (f) =>
        f.bus.publish('audit.acme.x.submitted', Buffer.from('x'), {
          headers: { 'Sandbus-Ledger-Sequence': '12' },
        }),
      /is not by audit/,
    ],
    [
      'when the rest of it was changed',
      async (f) => changeLeaf(f.ledgerFile, 2),
      /the first 12 records of the ledger are not those of the newest checkpoint on the bus/,
    ],
  ];
  for (const [what, spoil, message] of faults)
    test(what, async () => {
      await using f = await fixture();
      await restored(f);
      await spoil(f);
      await assert.rejects(f.startAudit(), message);
    });

  test('when only a checkpoint says that there was more', async () => {
    await using f = await fixture();
    await restored(f);
    for (let sequence = 1; sequence <= (await f.bus.streamState('AUDIT')).lastSequence; sequence++) {
      const message = await f.bus.messageAt('AUDIT', sequence);
      if (message?.subject.startsWith('audit.')) await f.bus.deleteMessage('AUDIT', sequence);
    }
    await assert.rejects(
      f.startAudit(),
      /newest checkpoint on the bus covers 12 records, the ledger has only 6/,
    );
  });
});

async function findRecord(f: Fixture, ledgerSequence: number): Promise<number | null> {
  for (let next = await f.bus.nextMessage('AUDIT', 1, 'audit.>'); next !== null; ) {
    if (next.headers['Sandbus-Ledger-Sequence'] === String(ledgerSequence)) return next.sequence;
    next = await f.bus.nextMessage('AUDIT', next.sequence + 1, 'audit.>');
  }
  return null;
}

/** A record that belongs to another job than those that follow, so that only the tree shows it. */
function changeLeaf(file: string, sequence: number): void {
  const database = new DatabaseSync(file);
  database.prepare('UPDATE record SET leaf_hash = zeroblob(32) WHERE sequence = ?').run(sequence);
  database.close();
}
