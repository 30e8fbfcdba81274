/** Proofs made from real stores are good, and say why there is none. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { OperationalError } from '../platform/errors.ts';
import { stores } from './fixture.ts';
import { openReader } from './open.ts';
import type { PathPage } from './prove.ts';
import { checkpointSince, pathsOfJob, proveJob } from './prove.ts';
import type { LedgerReader } from './store.ts';
import { openCheckpoint } from './tlog/checkpoint.ts';
import type { MemoryLog } from './tlog/fixture.ts';
import { checkJobProof } from './tlog/job-proof.ts';
import type { TreeHead } from './tlog/merkle.ts';
import { checkConsistency, checkInclusion } from './tlog/merkle.ts';
import { decodeBase64 } from './tlog/note.ts';
import { fill, jobOf, storyOf, tampering } from './verify-fixture.ts';

/** Ends in the middle of a round of jobs: some have ended, some not, and some events wait for a checkpoint. */
const [size, signed] = [693, 680];
const checkpointsAt = [1, 256, 300, signed];
const bytesOf = (text: string): Uint8Array => decodeBase64(text) ?? new Uint8Array();
const failsWith = (code: string) => (error: unknown) =>
  error instanceof OperationalError && error.code === code;

for (const { name, missing, make, stop } of stores())
  describe(`${name}: proofs`, { skip: missing ?? false }, () => {
    let location: string;
    let log: MemoryLog;
    let reader: LedgerReader;
    before(async () => {
      location = await make();
      log = await fill(location, size, checkpointsAt);
      reader = await openReader(location);
    });
    after(async () => {
      await reader.close();
      await stop();
    });

    test('of every job that ended are complete', async () => {
      for (let number = 0; number < 130; number += 7) {
        const proof = Buffer.from(JSON.stringify(await proveJob(reader, jobOf(number))));
        const verdict = checkJobProof(proof, log.verifierKey, log.keyring);
        assert.ok(verdict.ok, verdict.ok ? '' : verdict.faults.join());
        assert.deepEqual([verdict.value.complete, verdict.value.events.length], [true, 5]);
        assert.ok(verdict.value.events.every(({ payload }) => payload !== null));
      }
    });

    test('of a job that has not ended hold what is signed', async () => {
      const last = storyOf(signed - 1)[0];
      const proof = Buffer.from(JSON.stringify(await proveJob(reader, last, { payloads: false })));
      const verdict = checkJobProof(proof, log.verifierKey);
      assert.ok(verdict.ok);
      assert.deepEqual([verdict.value.complete, verdict.value.events.length], [false, 3]);
      assert.ok(verdict.value.events.every(({ payload }) => payload === null));
    });

    test('of a terminal event that waits for a checkpoint are not made', async () => {
      await assert.rejects(proveJob(reader, storyOf(size - 1)[0]), failsWith('NOT_SIGNED_YET'));
    });

    test('of a job that is not there are not made', async () => {
      await assert.rejects(proveJob(reader, jobOf(9999)), failsWith('NOT_FOUND'));
      await assert.rejects(proveJob(reader, jobOf(1, 'globex')), failsWith('NOT_FOUND'));
    });

    test('come in pages, all by one checkpoint', async () => {
      const job = jobOf(3);
      const leaves: number[] = [];
      let treeSize: number | undefined;
      for (let [after, more] = [-1, true]; more; ) {
        const page: PathPage = await pathsOfJob(reader, job, { after, limit: 2, treeSize });
        const opened = openCheckpoint(Buffer.from(page.checkpoint), log.verifierKey);
        assert.ok(opened.ok);
        for (const { sequence, inclusion } of page.leaves) {
          const { leafHash, jobId } = log.records[sequence] ?? assert.fail();
          // What was committed has other salts than the log in memory: the leaf of the store counts.
          const [record] = await reader.recordsAt([sequence]);
          assert.equal(record?.jobId, jobId);
          assert.notDeepEqual(record.leafHash, leafHash);
          const tree: TreeHead = { size: opened.value.size, root: opened.value.root };
          const claim = { leafHash: record.leafHash, index: sequence, ...tree };
          assert.deepEqual(checkInclusion(claim, inclusion.map(bytesOf)), { ok: true });
          leaves.push(sequence);
        }
        ({ next: after, more, treeSize } = page);
      }
      assert.deepEqual(leaves, [3, 13, 23, 33, 43]);
      assert.equal(treeSize, signed);
      await assert.rejects(
        pathsOfJob(reader, job, { after: -1, limit: 2, treeSize: 257 }),
        failsWith('NOT_FOUND'),
      );
    });

    test('show that the log has only grown, from any checkpoint', async () => {
      for (const row of await reader.checkpoints(0, 10)) {
        const { checkpoint, consistency } = await checkpointSince(reader, row.treeSize);
        const opened = openCheckpoint(Buffer.from(checkpoint), log.verifierKey);
        assert.ok(opened.ok && consistency !== null);
        const older = { size: row.treeSize, root: row.rootHash };
        assert.deepEqual(checkConsistency(older, opened.value, consistency.map(bytesOf)), { ok: true });
      }
      assert.equal((await checkpointSince(reader, null)).consistency, null);
      assert.equal((await checkpointSince(reader, 0)).consistency, null);
    });

    test('are not made from a checkpoint beyond the newest', async () => {
      await assert.rejects(checkpointSince(reader, signed + 1), failsWith('TRUNCATED'));
    });

    test('are not made of a ledger without checkpoints', async () => {
      const store = await tampering(location);
      await store.lend(async (bare) => {
        await bare.run('DELETE FROM checkpoint');
        const other = await openReader(bare.location);
        await assert.rejects(checkpointSince(other, null), failsWith('NOT_SIGNED_YET'));
        await assert.rejects(proveJob(other, jobOf(1)), failsWith('NOT_SIGNED_YET'));
        await other.close();
      });
      await store.close();
    });
  });
