/** A real bus and a real audit service for the tests of this folder, in a folder of their own. */
import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as delay } from 'node:timers/promises';
import { ensureLogKey, logKeyFiles } from '../ledger/log-key.ts';
import type { SqliteWriter } from '../ledger/sqlite/writer.ts';
import { systemClock } from '../platform/clock.ts';
import type { AuditPage, AuditRecord } from '../platform/codec.ts';
import { decodeAs, encode } from '../platform/codec.ts';
import { publishSigned, signedHeaders } from '../platform/events.ts';
import { everyService } from '../platform/fixture.ts';
import { createLogger } from '../platform/log.ts';
import type { Headers } from '../platform/nats/bus.ts';
import { Bus } from '../platform/nats/bus.ts';
import type { NatsServer } from '../platform/nats-server.ts';
import { startNatsServer } from '../platform/nats-server.ts';
import type { RunningService, ServiceContext } from '../platform/service.ts';
import { Telemetry } from '../platform/telemetry.ts';
import type { Cause, JobRef } from '../platform/topology.ts';
import { authors, eventId, headerNames, subjects } from '../platform/topology.ts';
import type { AuditConfig } from './config.ts';
import { startAudit } from './main.ts';

export interface Fixture {
  readonly bus: Bus;
  readonly url: string;
  /** The same server again, on the same port with the same files. */
  restartServer(): Promise<void>;
  readonly stateDir: string;
  readonly ledgerFile: string;
  readonly config: AuditConfig;
  readonly verifierKeyFile: string;
  readonly context: ServiceContext;
  startAudit(prepare?: (database: DatabaseSync) => void): Promise<RunningService>;
  /** Reads the ledger beside the service. */
  ledger<T>(read: (database: DatabaseSync) => T): T;
  [Symbol.asyncDispose](): Promise<void>;
}

/** The SDK of telemetry registers itself for the whole process, so all tests of a file share one. */
let telemetry: Telemetry | null = null;
let spanSink: (bytes: Uint8Array) => Promise<void> = async () => undefined;

export async function fixture(): Promise<Fixture> {
  const stateDir = await mkdtemp(join(tmpdir(), 'sandbus-audit-'));
  const storeDir = join(stateDir, 'nats');
  const identity = await everyService(stateDir);
  let server: NatsServer = await startNatsServer({ storeDir });
  const bus = await Bus.connect({ url: server.url, name: 'test', credentials: null, identity });
  await bus.ensureTopology({ replicas: 1, sizeFactor: 0.1 });
  telemetry ??= Telemetry.start({
    service: 'audit',
    sink: (bytes) => spanSink(bytes),
    exported: false,
    metrics: { exported: false, intervalMs: 60_000 },
  });
  spanSink = async (bytes) =>
    void (await publishSigned(bus, subjects.trace('audit'), `audit:spans:${randomUUID()}`, bytes));
  const log = createLogger('audit', 'fatal');
  const context = { bus, log, telemetry, clock: systemClock };
  const ledgerFile = join(stateDir, 'ledger.db');
  const logKey = logKeyFiles(stateDir);
  await ensureLogKey(logKey);
  const config = {
    ledger: ledgerFile,
    logKey,
    query: null,
    keep: { payloadDays: null, spanDays: null },
    downloadFolder: join(stateDir, 'downloads'),
  };
  const running = new Set<RunningService>();
  return {
    ...{ bus, url: server.url, stateDir, ledgerFile, config, context },
    verifierKeyFile: logKey.verifierKey,
    restartServer: async () => {
      await server.stop();
      server = await startNatsServer({ storeDir, port: Number(new URL(server.url).port) });
    },
    startAudit: async (prepare) => {
      const service = await startAudit(context, config, (store) =>
        prepare?.((store as SqliteWriter).database),
      );
      const once = {
        failed: service.failed,
        checks: service.checks ?? [],
        stop: () => (running.delete(once) ? service.stop() : Promise.resolve()),
      };
      running.add(once);
      return once;
    },
    ledger: (read) => {
      const database = new DatabaseSync(ledgerFile, { readOnly: true });
      try {
        return read(database);
      } finally {
        database.close();
      }
    },
    [Symbol.asyncDispose]: async () => {
      for (const service of [...running]) await service.stop();
      spanSink = async () => undefined;
      await bus.close();
      await server.stop();
      await rm(stateDir, { recursive: true });
    },
  };
}

export async function stopTelemetry(): Promise<void> {
  await telemetry?.stop();
}

export function newJob(tenant = 'acme'): JobRef {
  const time = Date.now().toString(16).padStart(12, '0');
  const tail = randomBytes(10).toString('hex');
  const jobId = `${time.slice(0, 8)}-${time.slice(8)}-7${tail.slice(0, 3)}-8${tail.slice(3, 6)}-${tail.slice(6, 18)}`;
  return { tenant, jobId };
}

export const newTraceparent = (): string =>
  `00-${randomBytes(16).toString('hex')}-${randomBytes(8).toString('hex')}-01`;

export async function submit(
  bus: Bus,
  job: JobRef,
  data = submission(job),
  headers: Headers = {},
): Promise<Cause> {
  const { sequence } = await bus.publish(subjects.job('submitted', job), data, { headers });
  return { stream: 'SUBMISSIONS', sequence };
}

export function submission(job: JobRef, inline = Buffer.from('echo hello\n')): Uint8Array {
  const limits = { memoryBytes: null, cpuMillis: null, wallMs: null, cpuTimeMs: null, processes: null };
  return encode('JobSubmitted', {
    ...job,
    submittedAt: Date.now() * 1000,
    plugin: { name: 'hello.sh', content: { inline, sha256: '0'.repeat(64), size: inline.length } },
    envelope: null,
    args: [],
    env: {},
    stdin: null,
    inputs: [],
    limits: { ...limits, outputBytes: null, tmpBytes: null },
    requiresGpu: false,
    network: 'none',
    maxAttempts: 1,
    deadline: null,
    labels: {},
  });
}

export function cancelled(job: JobRef): Uint8Array {
  return encode('JobCancelled', {
    ...job,
    cancelledAt: Date.now() * 1000,
    requestedBy: 'test',
    reason: 'enough',
  });
}

type ServiceKind =
  | 'verified'
  | 'rejected'
  | 'started'
  | 'finished'
  | 'cancelled'
  | 'superseded'
  | 'dead-lettered';

/** Publishes as a service would, by default under an id made of the cause. */
export async function say(
  bus: Bus,
  job: JobRef,
  kind: ServiceKind,
  data: Uint8Array,
  cause: Cause,
  more: Said = {},
) {
  const id = more.id ?? eventId(authors.get(`job.${kind}`)?.[0] ?? 'router', kind, cause, job);
  const subject = subjects.job(kind, job);
  const { [headerNames.signature]: signature = '' } = await signedHeaders(bus, { subject, id, data });
  const headers = {
    [headerNames.signature]: signature,
    [headerNames.cause]: `${cause.stream}:${cause.sequence}`,
    ...(more.traceparent === undefined ? {} : { [headerNames.traceparent]: more.traceparent }),
  };
  const { sequence } = await bus.publish(subject, data, { id, headers });
  return { stream: 'JOBS', sequence };
}
interface Said {
  readonly id?: string;
  readonly traceparent?: string;
}

/** Acks everything that a consumer of another service would have handled. */
export async function ackAll(bus: Bus, stream: string, durable: string): Promise<void> {
  for (let delivery = await bus.pullNow(stream, durable); delivery !== null; )
    [delivery] = [await delivery.settle.ack().then(() => bus.pullNow(stream, durable))];
}

export async function ask(bus: Bus, tenant: string, body: unknown) {
  const data = typeof body === 'string' ? Buffer.from(body) : Buffer.from(JSON.stringify(body));
  return bus.request(subjects.auditRead(tenant), data, {}, 25_000);
}

export async function askPage(bus: Bus, tenant: string, body: unknown): Promise<AuditPage> {
  const reply = await ask(bus, tenant, body);
  const fault = reply.headers[headerNames.error];
  if (fault !== undefined) throw new Error(`${fault}: ${Buffer.from(reply.data).toString()}`);
  return { ...decodeAs('AuditPage', reply.data) };
}

export async function askRecords(bus: Bus, tenant: string, jobId?: string): Promise<AuditRecord[]> {
  const page = await askPage(bus, tenant, { what: 'records', ...(jobId === undefined ? {} : { jobId }) });
  return page.items.map((item) => decodeAs('AuditRecord', item.bytes));
}

export async function askJson(bus: Bus, tenant: string, body: unknown): Promise<Record<string, unknown[]>> {
  return JSON.parse(Buffer.from((await ask(bus, tenant, body)).data).toString());
}

/** Every record in AUDIT, with the ledger sequence of its header. */
export async function feed(
  bus: Bus,
): Promise<{ ledgerSequence: number; subject: string; record: AuditRecord }[]> {
  const all = [];
  for (let next = await bus.nextMessage('AUDIT', 1, 'audit.>'); next !== null; ) {
    const ledgerSequence = Number(next.headers[headerNames.ledgerSequence]);
    all.push({ ledgerSequence, subject: next.subject, record: decodeAs('AuditRecord', next.data) });
    next = await bus.nextMessage('AUDIT', next.sequence + 1, 'audit.>');
  }
  return all;
}

/** Waits until `look` gives something other than false, null or undefined. */
export async function eventually<T>(
  what: string,
  look: () => Promise<T> | T,
  withinMs = 15_000,
): Promise<Exclude<T, false | null | undefined>> {
  const giveUpAt = performance.now() + withinMs;
  for (;;) {
    const found = await look();
    if (found !== false && found !== null && found !== undefined)
      return found as Exclude<T, false | null | undefined>;
    if (performance.now() > giveUpAt) throw new Error(`${what}: not within ${withinMs} ms`);
    await delay(20);
  }
}
