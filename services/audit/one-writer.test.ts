/** Two real audit processes on one ledger: one writes, the other one takes over, and nothing is recorded twice. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { connect } from 'nats';
import { openReader } from '../ledger/open.ts';
import type { PostgresServer } from '../ledger/postgres/server-fixture.ts';
import { debianPackage, findPostgres, startPostgres } from '../ledger/postgres/server-fixture.ts';
import type { AuditRecord } from '../platform/codec.ts';
import { stopChild } from '../platform/process.ts';
import { consumers, headerNames } from '../platform/topology.ts';
import type { AuditProcess } from './audit-process.ts';
import { startProcess } from './audit-process.ts';
import type { Fixture } from './fixture.ts';
import {
  ask,
  askPage,
  askRecords,
  eventually,
  feed,
  fixture,
  newJob,
  stopTelemetry,
  submit,
} from './fixture.ts';
import { startAudit } from './main.ts';

const skip =
  findPostgres() === null ? `PostgreSQL is not there: install Debian's package ${debianPackage}` : false;
let postgres: PostgresServer;
before(async () => {
  if (skip === false) postgres = await startPostgres();
});
const started: AuditProcess[] = [];
async function start(...args: Parameters<typeof startProcess>): Promise<AuditProcess> {
  const child = await startProcess(...args);
  started.push(child);
  return child;
}

after(async () => {
  for (const child of started) child.kill('SIGKILL');
  await postgres?.stop();
  await stopTelemetry();
});

/** A take-over on a busy machine. */
const patienceMs = 40_000;
const timeout = 150_000;

const recorded = (f: Fixture, count: number) =>
  eventually(
    `${count} records`,
    async () => (await askRecords(f.bus, 'acme').catch(() => [])).length === count,
    patienceMs,
  );

/** Pulls that a paused process has under way would still be answered, to nobody. */
async function untilNobodyPulls(f: Fixture): Promise<void> {
  const connection = await connect({ servers: f.url });
  const manager = await connection.jetstreamManager();
  const { stream, durable } = consumers.auditSubmissions;
  await eventually(
    'no pull waits',
    async () => (await manager.consumers.info(stream, durable)).num_waiting === 0,
  );
  await connection.close();
}

async function ledgerAt(location: string): Promise<AuditRecord[]> {
  const reader = await openReader(location);
  try {
    return await reader.records(0, { records: 1000, bytes: 1e9 });
  } finally {
    await reader.close();
  }
}

async function isWhole(f: Fixture, location: string, count: number): Promise<void> {
  const sequences = Array.from({ length: count }, (_, i) => i);
  const records = await ledgerAt(location);
  assert.deepEqual(
    records.map(({ sequence }) => sequence),
    sequences,
  );
  assert.equal(new Set(records.map(({ jobId }) => jobId)).size, count);
  const fed = await eventually(
    'fed',
    async () => (await feed(f.bus)).length >= count && feed(f.bus),
    patienceMs,
  );
  assert.deepEqual(
    fed.map(({ ledgerSequence }) => ledgerSequence),
    sequences,
  );
}

test('a writer that was paused past its lock in PostgreSQL is refused, and ends', {
  skip,
  timeout,
}, async () => {
  await using f = await fixture();
  const location = await postgres.database();
  const env = { SANDBUS_LEDGER_URL: location, SANDBUS_LOG_LEVEL: 'warn' };
  const first = await start(f, env);
  for (let i = 0; i < 5; i++) await submit(f.bus, newJob());
  await recorded(f, 5);
  const second = await start(f, env);
  first.kill('SIGSTOP');
  await untilNobodyPulls(f);
  const killed = await postgres.query(
    location,
    `SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
  );
  assert.equal(killed.length, 1);
  for (let i = 0; i < 5; i++) await submit(f.bus, newJob());
  await eventually('taken over', async () => (await ledgerAt(location)).length === 10, patienceMs);
  first.kill('SIGCONT');
  assert.deepEqual(await first.exited, { code: 1, signal: null });
  assert.match(first.said(), /holds the lock of the ledger has ended.*stands by when it is started again/);
  assert.equal(first.said().includes('sandbus@'), false, 'the URL of the database is not logged');
  await isWhole(f, location, 10);
  assert.equal((await stopChild(second, 5000)).code, 0);
});

test('the next one takes over a file of SQLite when the writer is killed', { timeout }, async () => {
  await using f = await fixture();
  const first = await start(f);
  const second = await start(f);
  for (let i = 0; i < 5; i++) await submit(f.bus, newJob());
  await recorded(f, 5);
  first.kill('SIGKILL');
  await first.exited;
  await untilNobodyPulls(f);
  for (let i = 0; i < 5; i++) await submit(f.bus, newJob());
  await recorded(f, 10);
  await isWhole(f, f.ledgerFile, 10);
  assert.equal((await stopChild(second, 5000)).code, 0);
});

test('a database that is away at the start is waited for, and said so', async () => {
  await using f = await fixture();
  const away = { ...f.config, ledger: 'postgres://sandbus:secret-word@127.0.0.1:1/ledger' };
  const service = await startAudit(f.context, away);
  const [reason] = service.checks?.map((check) => check()) ?? [];
  const held = ask(f.bus, 'acme', { what: 'records', waitMs: 20_000 });
  const { headers, data } = await ask(f.bus, 'acme', { what: 'jobs' });
  assert.equal(headers[headerNames.error], 'UNAVAILABLE');
  await service.stop();
  assert.equal((await held).headers[headerNames.error], 'UNAVAILABLE', 'at its end it answers at once');
  for (const said of [String(reason), Buffer.from(data).toString()]) {
    assert.match(said, /PostgreSQL.*it cannot be reached/);
    assert.doesNotMatch(said, /secret-word/);
  }
});

test('one that cannot reach its database leaves the answers to the one that has it', async () => {
  await using f = await fixture();
  await f.startAudit();
  const away = { ...f.config, ledger: 'postgres://sandbus@127.0.0.1:1/ledger' };
  const service = await startAudit(f.context, away);
  const questions = [
    ...Array.from({ length: 20 }, () => ({ what: 'records' })),
    { what: 'records', waitMs: 6_000 },
  ];
  const pages = await Promise.all(questions.map((question) => askPage(f.bus, 'nobody', question)));
  await service.stop();
  for (const page of pages) assert.deepEqual(page, { items: [], next: -1, more: false });
});
