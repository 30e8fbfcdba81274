/**
 * How fast events come from the bus into the ledger: the real audit service, which acks each event after its commit,
 * beside a bare loop that fetches and acks the same messages, and beside the bare insertion of the same records. In one
 * run, since machines differ and ratios do less.
 *
 *   npm run bench:ledger [-- --jobs 8000] [--postgres] [--profile FOLDER]     five events a job, as a job has that runs
 *
 * With --profile the audit service writes where its time went into the folder (a .cpuprofile, for Chrome's DevTools).
 */
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { AckPolicy, connect } from 'nats';
import { startProcess } from '../../services/audit/audit-process.ts';
import { cancelled, newJob, newTraceparent, submission } from '../../services/audit/fixture.ts';
import { verified, writerOf } from '../../services/ledger/fixture.ts';
import { ensureLogKey, logKeyFiles } from '../../services/ledger/log-key.ts';
import { described, keysOf, plan } from '../../services/ledger/plan.ts';
import { startPostgres } from '../../services/ledger/postgres/server-fixture.ts';
import type { Changes } from '../../services/ledger/store.ts';
import { CompactRange } from '../../services/ledger/tlog/compact-range.ts';
import { everyService } from '../../services/platform/fixture.ts';
import type { StreamMessage } from '../../services/platform/nats/bus.ts';
import { Bus } from '../../services/platform/nats/bus.ts';
import { startNatsServer } from '../../services/platform/nats-server.ts';
import { stopChild } from '../../services/platform/process.ts';
import { authors, eventId, headerNames, subjects } from '../../services/platform/topology.ts';
import { routed, started } from './ledger-events.ts';

const aimPerSecond = 10_000;
const batchRecords = 256;
const streams = ['SUBMISSIONS', 'JOBS'] as const;
/** Publishes on their way while the streams are filled. */
const windowJobs = 100;
/** Between looks at how far the service is: often enough for the rate, and no load of its own. */
const lookMs = 25;

type Identity = Awaited<ReturnType<typeof everyService>>;

async function main(): Promise<void> {
  const options = {
    jobs: { type: 'string', default: '8000' },
    postgres: { type: 'boolean', default: false },
    profile: { type: 'string' },
  } as const;
  const { values } = parseArgs({ options });
  const jobs = Number(values.jobs);
  const folder = await mkdtemp(join(tmpdir(), 'sandbus-bench-ledger-'));
  const identity = await everyService(folder);
  await ensureLogKey(logKeyFiles(folder));
  const server = await startNatsServer({ storeDir: join(folder, 'nats') });
  const bus = await Bus.connect({ url: server.url, name: 'bench', credentials: null, identity });
  const postgres = values.postgres ? await startPostgres() : null;
  try {
    await bus.ensureTopology({ replicas: 1, sizeFactor: 4 });
    await fill(bus, identity, jobs);
    const bare = await fetchAndAck(server.url);
    const messages = await everything(bus);
    const inserted = await insertBare(messages, join(folder, 'bare.db'));
    const checked = checkBare(messages, identity);
    const ledger = postgres === null ? {} : { SANDBUS_LEDGER_URL: await postgres.database() };
    const place = { url: server.url, stateDir: folder, serverPid: server.pid };
    const service = await commitAll(bus, place, 5 * jobs, { ...ledger, ...profiling(values.profile) });
    report({ bare, inserted, checked, ...service });
  } finally {
    await bus.close();
    await server.stop();
    await postgres?.stop();
    await rm(folder, { recursive: true });
  }
}

const profiling = (folder: string | undefined) =>
  folder === undefined ? {} : { NODE_OPTIONS: `--cpu-prof --cpu-prof-dir=${resolve(folder)}` };

/** What a job says that is verified, runs and ends. */
async function fill(bus: Bus, identity: Identity, jobs: number): Promise<void> {
  for (let done = 0; done < jobs; done += windowJobs)
    await Promise.all(
      Array.from({ length: Math.min(windowJobs, jobs - done) }, () => publishJob(bus, identity)),
    );
}

async function publishJob(bus: Bus, identity: Identity): Promise<void> {
  const job = newJob();
  const traceparent = newTraceparent();
  const { sequence } = await bus.publish(subjects.job('submitted', job), submission(job), {
    headers: { traceparent },
  });
  const cause = { stream: 'SUBMISSIONS', sequence };
  const events: [subject: string, what: string, service: string, data: Uint8Array][] = [
    [subjects.job('verified', job), 'verified', 'verifier', verified(job, 'a-key', 'f'.repeat(64))],
    [subjects.work({ runtime: 'bash', deviceClass: 'cpu' }, job), 'routed', 'router', routed(job)],
    [subjects.job('started', job), 'started', 'executor', started(job)],
    [subjects.job('cancelled', job), 'cancelled', authors.get('job.cancelled')?.[0] ?? '', cancelled(job)],
  ];
  for (const [subject, what, service, data] of events) {
    const id = eventId(service, what, cause, job);
    const signature = identity.sign({ subject, id, data });
    const headers = {
      ...{ [headerNames.signature]: signature, traceparent },
      [headerNames.cause]: `${cause.stream}:${cause.sequence}`,
    };
    await bus.publish(subject, data, { id, headers });
  }
}

/** Messages a second that one client fetches and acks, and does nothing else with. */
async function fetchAndAck(url: string): Promise<Rate> {
  const connection = await connect({ servers: url });
  const manager = await connection.jetstreamManager();
  const context = connection.jetstream();
  let messages = 0;
  const rate = measure();
  for (const stream of streams) {
    await manager.consumers.add(stream, { durable_name: 'bare', ack_policy: AckPolicy.Explicit });
    const consumer = await context.consumers.get(stream, 'bare');
    for (let left = (await consumer.info()).num_pending; left > 0; ) {
      const batch = await consumer.fetch({ max_messages: Math.min(left, batchRecords), expires: 5000 });
      for await (const message of batch) {
        message.ack();
        left--;
        messages++;
      }
    }
    await manager.consumers.delete(stream, 'bare');
  }
  await connection.close();
  return rate(messages);
}

/** Records a second that SQLite takes, from commits that are planned already. */
async function insertBare(messages: readonly StreamMessage[], file: string): Promise<Rate> {
  const store = await writerOf(file);
  const head = await store.head();
  let [tree, known, records] = [CompactRange.empty(), await store.lookUp(keysOf([])), 0];
  const planned: Changes[] = [];
  for (const batch of batches(messages)) {
    const { changes, tree: after } = plan(
      batch.map(described),
      { ...known, head: { ...head, size: tree.size } },
      tree,
      1,
    );
    planned.push(onlyRecords(changes, planned.at(-1)));
    [tree, records] = [after, records + changes.records.length];
    const sequences = [...changes.records].reduce(
      (next, { record }) => next.set(record.tenant, record.tenantSequence + 1),
      new Map(known.nextTenantSequence),
    );
    known = { ...known, nextTenantSequence: sequences };
  }
  const rate = measure();
  for (const changes of planned) await store.commit(changes);
  const inserted = rate(records);
  await store.close();
  return inserted;
}

/** Events a second whose signatures one core checks, where they have one. */
function checkBare(messages: readonly StreamMessage[], identity: Identity): Rate {
  const rate = measure();
  for (const message of messages)
    if (message.stream !== 'SUBMISSIONS' && !identity.check(message).ok)
      throw new Error(`${message.subject} is not signed`);
  return rate(messages.length);
}

function onlyRecords(changes: Changes, before: Changes | undefined): Changes {
  const lastLeafHash = before?.records.at(-1)?.record.leafHash ?? new Uint8Array();
  return {
    ...changes,
    onto: { ...changes.onto, lastLeafHash },
    jobs: [],
    deletions: [],
    endedJobs: [],
    subtrees: [],
  };
}

async function everything(bus: Bus): Promise<StreamMessage[]> {
  const all: StreamMessage[] = [];
  for (const stream of streams) {
    const { lastSequence } = await bus.streamState(stream);
    for (let from = 1; from <= lastSequence; from += batchRecords) {
      const sequences = Array.from(
        { length: Math.min(batchRecords, lastSequence - from + 1) },
        (_, i) => from + i,
      );
      const found = await Promise.all(sequences.map((sequence) => bus.messageAt(stream, sequence)));
      all.push(...found.filter((message) => message !== null));
    }
  }
  return all;
}

function* batches(messages: readonly StreamMessage[]): Iterable<readonly StreamMessage[]> {
  for (let from = 0; from < messages.length; from += batchRecords)
    yield messages.slice(from, from + batchRecords);
}

interface Place {
  readonly url: string;
  readonly stateDir: string;
  readonly serverPid: number;
}

interface ServiceRates {
  readonly committed: Rate;
  readonly fed: Rate;
  /** Processor time of nats-server while events were committed. */
  readonly serverMicros: number;
}

/** The real service, from its readiness until every event is acked, and until every record is in AUDIT. */
async function commitAll(
  bus: Bus,
  place: Place,
  events: number,
  more: Readonly<Record<string, string>>,
): Promise<ServiceRates> {
  const service = await startProcess(place, more);
  const ended = service.exited.then(() => {
    throw new Error(`the audit service has ended: ${service.said()}`);
  });
  const rates = await Promise.race([ended, ratesOf(bus, service.pid, place.serverPid, events)]);
  ended.catch(() => undefined);
  await stopChild(service, 10_000);
  return rates;
}

async function ratesOf(bus: Bus, pid: number, serverPid: number, events: number): Promise<ServiceRates> {
  const [rate, ofServer] = [measure(pid), measure(serverPid)];
  for (const stream of streams) {
    const { lastSequence } = await bus.streamState(stream);
    while ((await bus.ackFloor(stream, 'audit')) < lastSequence) await delay(lookMs);
  }
  const [committed, serverMicros] = [rate(events), ofServer(events).cpuMicros];
  const newest = async () =>
    Number((await bus.lastMessage('AUDIT', 'audit.>'))?.headers[headerNames.ledgerSequence]);
  while ((await newest()) !== events - 1) await delay(lookMs);
  return { committed, fed: rate(events), serverMicros };
}

/** What a rate cost in processor time, which a busy machine does not change much. */
interface Rate {
  readonly perSecond: number;
  readonly cpuMicros: number;
}

/** Of this process, or of another one (proc_pid_stat(5): ticks of 10 ms). */
function cpuMicros(pid?: number): number {
  const { user, system } = process.cpuUsage();
  if (pid === undefined) return user + system;
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) * 10_000;
}

function measure(pid?: number): (events: number) => Rate {
  const [startedAt, cpuAt] = [performance.now(), cpuMicros(pid)];
  return (events) => ({
    perSecond: events / seconds(startedAt),
    cpuMicros: (cpuMicros(pid) - cpuAt) / events,
  });
}

const seconds = (since: number): number => (performance.now() - since) / 1000;

interface Rates extends ServiceRates {
  readonly bare: Rate;
  readonly inserted: Rate;
  readonly checked: Rate;
}

function report(rates: Rates): void {
  const { committed } = rates;
  const line = (what: string, { perSecond, cpuMicros }: Rate) =>
    console.log(
      [what.padEnd(42), perSecond.toFixed(0).padStart(8), cpuMicros.toFixed(0).padStart(13)].join(' '),
      (committed.perSecond / perSecond).toFixed(2).padStart(15),
    );
  console.log(`${''.padEnd(42)} events/s  CPU µs/event  committed/this`);
  line('bare fetch and ack', rates.bare);
  line('bare insertion (SQLite)', rates.inserted);
  line('bare signature checks, on one core', rates.checked);
  line('audit service: committed, acked', committed);
  line('audit service: published to AUDIT as well', rates.fed);
  console.log(
    `${'nats-server, while events were committed'.padEnd(51)} ${rates.serverMicros.toFixed(0).padStart(13)}`,
  );
  console.log(
    `aim: ${aimPerSecond} committed a second: ${committed.perSecond >= aimPerSecond ? 'met' : 'NOT met'}`,
  );
}

await main();
