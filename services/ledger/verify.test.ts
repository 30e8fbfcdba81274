/** Verification finds every change to what is stored, once, where it is; and nothing in a ledger that is whole. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { stores, writerOf } from './fixture.ts';
import { openReader } from './open.ts';
import type { SignedCheckpoint } from './tlog/checkpoint.ts';
import { openCheckpoint } from './tlog/checkpoint.ts';
import { MemoryLog } from './tlog/fixture.ts';
import type { VerifyOptions, VerifyReport } from './verify.ts';
import { verifyLedger } from './verify.ts';
import type { Cell, Change, Tampering } from './verify-fixture.ts';
import { all, fill, flip, jobOf, lastLetter, oneMore, remove, set, tampering } from './verify-fixture.ts';

const size = 600;
const checkpointsAt = [1, 100, 256, 300, 599];

/**
 * What is done → what is found, as kind and sequence. Verification does not know which store it reads, so that on
 * PostgreSQL, where each case takes longer, those are enough that need another query.
 */
const onBoth =
  'time; leaf hash; payload; salt; two rows swapped; a row deleted; everything gone but the checkpoints; ' +
  'the end cut off, the newest checkpoint too late to be gone; stored subtree; stored subtree gone; ' +
  'note of a checkpoint; root of a checkpoint; size of a checkpoint; state; row of another; row; ' +
  'what lies behind is; a number of a tenant; no stored hash before; the first records missing';
const faults: readonly [what: string, change: Change, found: string[]][] = [
  ['time', set('recorded_at', 123, oneMore), ['leaf 123', 'time 124']],
  ['subject', set('subject', 123, lastLetter), ['leaf 123', 'columns 123']],
  ['event id', set('event_id', 123, lastLetter), ['leaf 123']],
  ['signer', set('signer', 123, lastLetter), ['leaf 123']],
  ['digest of the payload', set('payload_hash', 123, flip), ['leaf 123', 'payload 123']],
  ['leaf before', set('previous_leaf_hash', 123, flip), ['leaf 123', 'chain 123']],
  ['leaf hash', set('leaf_hash', 123, flip), ['leaf 123']],
  ['leaf hash of the last record', set('leaf_hash', 599, flip), ['leaf 599']],
  ['leaf hash, too short', set('leaf_hash', 123, () => new Uint8Array(3)), ['leaf 123']],
  ['payload', set('payload', 123, flip), ['payload 123']],
  ['salt', set('payload_salt', 123, flip), ['payload 123']],
  ['salt left behind', set('payload', 123, () => null), ['payload 123']],
  [
    'tenant',
    set('tenant', 120, () => 'initech'),
    ['columns 120', 'order 120', 'chain 120', 'order 122', 'chain 130'],
  ],
  ['kind', set('kind', 123, () => 'cancelled'), ['columns 123']],
  ['number in the tenant', set('tenant_sequence', 599, oneMore), ['order 599']],
  ['sequence', set('sequence', 599, oneMore), ['missing 599', 'leaf 600']],
  [
    'two rows swapped',
    all(
      set('sequence', 120, () => -1),
      set('sequence', 121, () => 120),
      set('sequence', -1, () => 121),
    ),
    ['leaf 120', 'leaf 121', 'subtree 0', 'checkpoint 256', 'checkpoint 600'],
  ],
  ['a row deleted', remove(123), ['missing 123']],
  ['three rows deleted', remove(123, 124, 133), ['missing 123', 'missing 133']],
  ['the first row deleted', remove(0), ['missing 0']],
  ['the end cut off, the newest checkpoint too late to be gone', remove(598, 599), ['truncated 598']],
  ['everything gone but the checkpoints', (store) => store.run('DELETE FROM record'), ['truncated 0']],
  ['stored subtree', set('hash', 1, flip, 'subtree', 'number'), ['subtree 256']],
  ['stored subtree gone', (store) => store.run('DELETE FROM subtree WHERE number = 0'), ['subtree 0']],
  ['note of a checkpoint', set('note', 256, flip, 'checkpoint', 'tree_size'), ['checkpoint 256']],
  ['root of a checkpoint', set('root_hash', 256, flip, 'checkpoint', 'tree_size'), ['checkpoint 256']],
  ['size of a checkpoint', set('tree_size', 256, oneMore, 'checkpoint', 'tree_size'), ['checkpoint 257']],
];

for (const { name, missing, make, stop } of stores())
  describe(`${name}: what was changed is found`, { skip: missing ?? false }, () => {
    let whole: Tampering;
    const log = new MemoryLog();
    before(async () => {
      const location = await make();
      await fill(location, size, checkpointsAt, log);
      whole = await tampering(location);
    });
    after(async () => {
      await whole.close();
      await stop();
    });

    const verify = async (
      { location }: Tampering,
      options: Partial<VerifyOptions> = {},
    ): Promise<VerifyReport> => {
      const reader = await openReader(location);
      try {
        return await verifyLedger(reader, { key: log.verifierKey, ...options });
      } finally {
        await reader.close();
      }
    };
    const keptAt = async (treeSize: number): Promise<SignedCheckpoint> => {
      const note = await whole.get('SELECT note FROM checkpoint WHERE tree_size = ?', treeSize);
      const opened = openCheckpoint(note as Uint8Array, log.verifierKey);
      assert.ok(opened.ok);
      return opened.value;
    };

    test('nothing in a ledger that is whole', async () => {
      const { findings, ...report } = await verify(whole, { keyring: log.keyring, kept: await keptAt(300) });
      assert.deepEqual(findings, []);
      assert.equal(report.ok, true);
      const submissions = size / 5;
      assert.deepEqual(
        [report.size, report.checkpoints, report.erased, report.validSignatures],
        [size, checkpointsAt.length, 0, size - submissions],
      );
    });

    /** What is found after a change, which is then undone. */
    const verifyChanged = (change: Change, options: Partial<VerifyOptions> = {}): Promise<VerifyReport> =>
      whole.lend(async (store) => {
        await change(store);
        return verify(store, options);
      });

    const here = <T extends readonly [string, ...unknown[]]>(cases: readonly T[]): readonly T[] =>
      cases.filter(([what]) => name === 'SQLite' || onBoth.split('; ').includes(what));

    for (const [what, change, wanted] of here(faults))
      test(what, async () => {
        const { ok, findings } = await verifyChanged(change);
        assert.deepEqual(found(findings), wanted, findings.map(({ fault }) => fault).join('\n'));
        assert.equal(ok, false);
      });

    test('the signature of an event, where the keys are given', async () => {
      const change = all(
        set('signature', 123, flip),
        set('signature', 124, () => null),
      );
      assert.equal((await verifyChanged(change)).ok, true);
      const { findings } = await verifyChanged(change, { keyring: log.keyring });
      assert.deepEqual(found(findings), ['signature 123', 'signature 124']);
    });

    const ofJob = (column: string, change: (value: Cell) => Cell): Change =>
      set(column, 3, change, 'job', 'first_sequence');
    const rows: readonly [what: string, change: Change, found: string[]][] = [
      ['state', ofJob('state', () => 'finished'), ['job 3']],
      ['outcome', ofJob('outcome', () => 'exited'), ['job 3']],
      ['last leaf', ofJob('last_leaf_hash', flip), ['job 3']],
      ['end', ofJob('terminal_sequence', () => 43), ['job 3']],
      ['first record', ofJob('first_sequence', () => 100_000), ['job 3']],
      ['age', ofJob('updated_at_ms', oneMore), ['job 3']],
      [
        'row of another',
        all(
          ofJob('job_id', lastLetter),
          ofJob('state', () => 'finished'),
        ),
        ['job 3', 'job 3'],
      ],
      ['row', (store) => store.run('DELETE FROM job WHERE first_sequence = 3'), ['job 3']],
    ];
    test('the rows of jobs agree with the records', async () => {
      assert.deepEqual((await verify(whole, { jobs: true })).findings, []);
    });
    for (const [what, change, wanted] of here(rows))
      test(`the row of a job: ${what}`, async () => {
        const { findings } = await verifyChanged(change, { jobs: true });
        assert.deepEqual(found(findings), wanted, findings.map(({ fault }) => fault).join('\n'));
      });

    test('erased payloads are counted and are no fault', async () => {
      const { ok, erased } = await whole.lend(async (store) => {
        const writer = await writerOf(store.location);
        await writer.eraseJob(jobOf(12));
        await writer.close();
        return verify(store);
      });
      assert.deepEqual([ok, erased], [true, 5]);
    });

    test('the row of a job with erased payloads must still have a time at which it was submitted', async () => {
      await whole.lend(async (store) => {
        const writer = await writerOf(store.location);
        await writer.eraseJob(jobOf(3));
        await writer.close();
        assert.deepEqual((await verify(store, { jobs: true })).findings, []);
        await set('submitted_at_ms', 3, oneMore, 'job', 'first_sequence')(store);
        assert.deepEqual(found((await verify(store, { jobs: true })).findings), ['job 3']);
      });
    });

    test('a record in front of the first one', async () => {
      await whole.lend(async (store) => {
        await set('sequence', 599, () => -5)(store);
        const { findings } = await verify(store);
        assert.deepEqual(found(findings), ['stray -5']);
      });
    });

    describe('what no checkpoint covers', () => {
      const lastAt = 1_800_000_000_000_000 + size;
      const minute = 60_000_000;
      const takenOut: [what: string, where: string, covered: number][] = [
        ['the newest checkpoints', 'tree_size > 256', 256],
        ['all checkpoints', 'true', 0],
      ];
      for (const [what, where, covered] of takenOut)
        test(`${what} taken out: it is counted, and found once they must have been there`, async () => {
          const kept = await keptAt(300);
          await whole.lend(async (store) => {
            await store.run(`DELETE FROM checkpoint WHERE ${where}`);
            const fresh = await verify(store, { now: lastAt });
            assert.deepEqual([fresh.ok, fresh.covered], [true, covered]);
            const { findings } = await verify(store, { now: lastAt + minute });
            assert.deepEqual(found(findings), [`unsigned ${covered}`]);
            const { findings: behind } = await verify(store, { now: lastAt + minute, kept });
            assert.deepEqual(found(behind), ['unsigned 300']);
          });
        });
    });

    test('without the key roots are compared, and signatures are not', async () => {
      const stranger = new MemoryLog();
      assert.equal((await verify(whole, { key: null })).ok, true);
      const { findings } = await verify(whole, { key: stranger.verifierKey });
      assert.deepEqual(
        found(findings),
        checkpointsAt.map((treeSize) => `checkpoint ${treeSize}`),
      );
    });

    test('a list of findings ends, the count goes on', async () => {
      const everywhere: Change = (store) => store.run("UPDATE record SET signer = 'x'");
      const { findings, moreFindings } = await verifyChanged(everywhere, { mostFindings: 10 });
      assert.deepEqual([findings.length, moreFindings], [10, size - 10]);
    });

    describe('a checkpoint that was kept elsewhere', () => {
      test('finds the end cut off with the checkpoints of it', async () => {
        const cut = all(
          (store) => store.run('DELETE FROM record WHERE sequence >= 299'),
          (store) => store.run('DELETE FROM subtree WHERE number = 1'),
          (store) => store.run('DELETE FROM checkpoint WHERE tree_size > 299'),
        );
        const kept = await keptAt(300);
        assert.equal((await verifyChanged(cut)).ok, true, 'nothing inside of the database tells');
        for (const options of [{ kept }, { since: kept }])
          assert.deepEqual(found((await verifyChanged(cut, options)).findings), ['truncated 299']);
      });

      test('finds another history by the same hands', async () => {
        const keptBefore = await Promise.all([1, 300, 599].map(keptAt));
        await whole.lend(async (store) => {
          await store.clear();
          await fill(store.location, size, checkpointsAt, log.another());
          assert.equal((await verify(store)).ok, true, 'it is whole, and signed with the same key');
          for (const kept of keptBefore) {
            const { findings } = await verify(store, { kept });
            assert.deepEqual(found(findings), [`kept ${kept.size}`]);
            assert.equal(found((await verify(store, { since: kept })).findings)[0], `kept ${kept.size}`);
          }
        });
      });
    });

    describe('only what came after a kept checkpoint', () => {
      test('is verified, and begins where that ends', async () => {
        const { root: wholeRoot } = await verify(whole);
        for (const treeSize of checkpointsAt) {
          const { ok, from, root } = await verify(whole, { since: await keptAt(treeSize) });
          assert.deepEqual([ok, from, root], [true, treeSize, wholeRoot]);
        }
      });
      const later: [what: string, change: Change, found: string[]][] = [
        ['what lies before is not looked at', set('payload', 123, flip), []],
        ['what lies behind is', set('payload', 423, flip), ['payload 423']],
        [
          'what names another event before it',
          set('previous_leaf_hash', 311, flip),
          ['leaf 311', 'chain 311'],
        ],
        ['a number of a tenant', set('tenant_sequence', 599, oneMore), ['order 599']],
        ['a time', set('recorded_at', 300, () => 1), ['leaf 300', 'time 300']],
        ['a stored hash before', set('hash', 0, flip, 'subtree', 'number'), ['kept 300']],
        [
          'no stored hash before',
          (store) => store.run('DELETE FROM subtree WHERE number = 0'),
          ['subtree 300'],
        ],
        ['the first records missing', remove(300, 301), ['missing 300']],
      ];
      for (const [what, change, wanted] of here(later))
        test(what, async () => {
          const { findings } = await verifyChanged(change, { since: await keptAt(300) });
          assert.deepEqual(found(findings), wanted);
        });
      test('cannot lie before what is asked', async () => {
        const options = { since: await keptAt(300), kept: await keptAt(256) };
        await assert.rejects(verify(whole, options), /of 256 records lies before --since, of 300/);
      });
    });
  });

const found = (findings: VerifyReport['findings']): string[] =>
  findings.map(({ kind, sequence }) => `${kind} ${sequence}`);
