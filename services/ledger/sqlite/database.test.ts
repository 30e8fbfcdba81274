/** Files of SQLite: older ones are brought forward, others are told what is wrong. */
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, describe, test } from 'node:test';
import { newJob, submission } from '../../audit/fixture.ts';
import type { JobRef } from '../../platform/topology.ts';
import { subjects } from '../../platform/topology.ts';
import { verified, writerOf } from '../fixture.ts';
import { Ledger } from '../ledger.ts';
import { openReader } from '../open.ts';
import { compactRangeAt } from '../tlog/proofs.ts';
import { firstTables } from './schema.ts';

let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sandbus-ledger-'));
});
after(() => rm(folder, { recursive: true }));

const submitted = (sequence: number, job: JobRef) => ({
  ...{ stream: 'SUBMISSIONS', sequence, data: submission(job), headers: {} },
  subject: subjects.job('submitted', job),
});

/** A ledger as the first version made it: the tables of then, with the rows of a ledger of today. */
async function ofVersionOne(file: string, job: JobRef): Promise<Uint8Array> {
  const ledger = await Ledger.open(await writerOf(`${file}.new`));
  await ledger.append(
    Array.from({ length: 259 }, (_, i) => submitted(i + 1, newJob())),
    1,
  );
  const id = { 'Nats-Msg-Id': 'verifier:verified:SUBMISSIONS:1' };
  const event = { stream: 'JOBS', sequence: 1, subject: subjects.job('verified', job), headers: id };
  await ledger.append([submitted(300, job), { ...event, data: verified(job, 'a-key', 'f'.repeat(64)) }], 2);
  await ledger.store.close();
  const old = new DatabaseSync(file);
  old.exec(`${firstTables}; PRAGMA user_version = 1; ATTACH '${file}.new' AS new`);
  for (const table of ['record', 'duplicate', 'stream', 'job', 'deletion', 'feed', 'span']) {
    const columns = old.prepare(`SELECT name FROM pragma_table_info('${table}', 'main')`).all();
    const names = columns.map(({ name }) => name).join(', ');
    old.exec(`INSERT INTO main.${table} (${names}) SELECT ${names} FROM new.${table}`);
  }
  old.close();
  return ledger.root;
}

test('a ledger of the first version is brought forward by its writer, with all that later ones have', async () => {
  const file = join(folder, 'old.db');
  const job = newJob();
  const root = await ofVersionOne(file, job);
  await assert.rejects(openReader(file), /schema version 1.*start the audit service on it once/);
  const ledger = await Ledger.open(await writerOf(file));
  assert.deepEqual([ledger.size, Buffer.from(ledger.root)], [261, Buffer.from(root)]);
  const reader = await openReader(file);
  assert.deepEqual(Buffer.from((await compactRangeAt(reader, 261)).root()), Buffer.from(root));
  assert.equal((await reader.subtrees(8, 0, 9)).length, 1);
  const [row] = await reader.jobs({ keyId: 'a-key', pluginSha256: 'f'.repeat(64) }, { limit: 9 });
  assert.deepEqual([row?.jobId, row?.keyIds], [job.jobId, ['a-key']]);
  await reader.close();
  await ledger.append([submitted(301, newJob())], 3);
  await ledger.store.close();
});

describe('what cannot be read is told so', () => {
  test('no file', () => assert.rejects(openReader(join(folder, 'none.db')), /there is no ledger/));
  test('no database', async () => {
    const file = join(folder, 'text.db');
    await writeFile(
      file,
      'not a database at all, but long enough to be taken for the header of one '.repeat(20),
    );
    await assert.rejects(openReader(file), /is no SQLite database/);
  });
  test('a ledger of a newer program', async () => {
    const file = join(folder, 'newer.db');
    const database = new DatabaseSync(file);
    database.exec('PRAGMA user_version = 99');
    database.close();
    await assert.rejects(openReader(file), /schema version 99.*newer program/);
    await assert.rejects(writerOf(file), /schema version 99.*newer one/);
  });
});
