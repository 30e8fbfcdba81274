/** What only PostgreSQL has: a writer that does not know yet that it is one no longer, and a URL with a password. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { newJob, submission } from '../../audit/fixture.ts';
import { UsageError } from '../../platform/errors.ts';
import type { StreamMessage } from '../../platform/nats/bus.ts';
import { subjects } from '../../platform/topology.ts';
import { LostLedgerError } from '../faults.ts';
import { writerOf } from '../fixture.ts';
import { Ledger } from '../ledger.ts';
import { claimWriter, openReader } from '../open.ts';
import type { LedgerWriter } from '../store.ts';
import type { PostgresServer } from './server-fixture.ts';
import { debianPackage, findPostgres, startPostgres } from './server-fixture.ts';

const skip =
  findPostgres() === null ? `PostgreSQL is not there: install Debian's package ${debianPackage}` : false;
let server: PostgresServer;
before(async () => {
  if (skip === false) server = await startPostgres();
});
after(() => server?.stop());

const event = (sequence: number): StreamMessage => {
  const job = newJob();
  const subject = subjects.job('submitted', job);
  return { stream: 'SUBMISSIONS', sequence, subject, data: submission(job), headers: {} };
};

describe('a writer whose epoch is over may write nothing at all', { skip }, () => {
  let location: string;
  let ledger: Ledger;
  before(async () => {
    location = await server.database();
    ledger = await Ledger.open(await writerOf(location));
    await ledger.append([event(1)], 1);
    // What a take-over does, of which a paused process hears nothing.
    await server.query(location, 'UPDATE sandbus.writer SET epoch = epoch + 1');
  });
  after(() => ledger.store.close());

  const place = { stream: 'JOBS', sequence: 1 };
  const span = {
    ...{ traceId: 't', spanId: 's', parentSpanId: null, service: 'a', name: 'n', kind: 1, startMicros: 1 },
    ...{ endMicros: 2, status: 'ok' as const, statusMessage: null, attributes: {}, links: [] },
  };
  const writes: [what: string, write: (store: LedgerWriter) => Promise<unknown>][] = [
    ['append', () => ledger.append([event(2)], 2)],
    ['addSpans', (s) => s.addSpans([span])],
    [
      'addCheckpoint',
      (s) => s.addCheckpoint({ treeSize: 1, rootHash: Buffer.alloc(32), at: 1, note: Buffer.alloc(1) }),
    ],
    ['noteDeletions', (s) => s.noteDeletions([{ ...place, awaits: null }])],
    ['deletionsDone', (s) => s.deletionsDone([place])],
    ['liftWaits', (s) => s.liftWaits('verifier', 1)],
    ['saveFeedPosition', (s) => s.saveFeedPosition({ ledgerSequence: 1, streamSequence: 1 })],
    ['eraseJob', (s) => s.eraseJob(newJob())],
    ['erasePayloads', (s) => s.erasePayloads(1e15, 10)],
    ['removeSpans', (s) => s.removeSpans(1e15, 10)],
  ];
  for (const [what, write] of writes)
    test(what, async () => {
      await assert.rejects(write(ledger.store), (error) => {
        assert.ok(error instanceof LostLedgerError);
        assert.match(
          error.message,
          /another audit service has taken over \(writer epoch 2, this one has 1\)/,
        );
        return true;
      });
    });

  test('and the ledger is as it was', async () => {
    const [counts] = await server.query(
      location,
      `SELECT (SELECT count(*)::int FROM sandbus.record) AS records, (SELECT count(*)::int FROM sandbus.span) AS spans,
        (SELECT count(*)::int FROM sandbus.checkpoint) AS checkpoints`,
    );
    assert.deepEqual(counts, { records: 1, spans: 0, checkpoints: 0 });
  });
});

test('a database that failed over to an older state is not gone on with', { skip }, async () => {
  const location = await server.database();
  const ledger = await Ledger.open(await writerOf(location));
  await ledger.append([event(1), event(2)], 1);
  await server.query(location, 'DELETE FROM sandbus.record WHERE sequence = 1');
  await assert.rejects(ledger.append([event(3)], 2), (error) => error instanceof LostLedgerError);
  await ledger.store.close();
  assert.deepEqual(await server.query(location, 'SELECT count(*)::int AS n FROM sandbus.record'), [{ n: 1 }]);
});

describe('what cannot be used is told so, and no password with it', { skip }, () => {
  const cases: [what: string, url: (url: URL) => void, message: RegExp][] = [
    [
      'no such database',
      (url) => {
        url.pathname = '/nothing';
      },
      /refuses SANDBUS_LEDGER_URL: database "nothing" does not exist/,
    ],
    [
      'no such user',
      (url) => {
        url.username = 'stranger';
      },
      /refuses SANDBUS_LEDGER_URL: role "stranger" does not exist/,
    ],
    [
      'nobody listens',
      (url) => {
        url.port = '1';
      },
      /PostgreSQL.*it cannot be reached/,
    ],
  ];
  for (const [what, change, message] of cases)
    test(what, async () => {
      const url = new URL(await server.database());
      url.password = 'secret-word';
      change(url);
      for (const open of [claimWriter, openReader])
        await assert.rejects(open(url.href), (error: Error) => {
          assert.match(error.message, message);
          assert.equal(JSON.stringify([error.message, error.stack]).includes('secret-word'), false);
          return true;
        });
    });

  test('a database without a ledger, for a reader', async () => {
    await assert.rejects(openReader(await server.database()), (error) => {
      assert.ok(error instanceof UsageError);
      assert.match(error.message, /no ledger in this database/);
      return true;
    });
  });

  test('a ledger of a newer program', async () => {
    const location = await server.database();
    await (await writerOf(location)).close();
    await server.query(location, 'UPDATE sandbus.ledger_version SET version = 99');
    for (const open of [claimWriter, openReader])
      await assert.rejects(open(location), /version 99.*newer program/s);
  });
});
