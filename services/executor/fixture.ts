/** For tests: a bus, and executors as processes of their own, given work as the router would give it. */
import { createHash, randomBytes } from 'node:crypto';
import { mkdtemp, open, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Events, JobFinished, JobRouted, LogChunk, Runtime } from '../../schemas/generated/events.ts';
import { decodeAs } from '../platform/codec.ts';
import { installation, serviceEnvironment } from '../platform/config.ts';
import { outgoing, publishEvent } from '../platform/events.ts';
import { everyService } from '../platform/fixture.ts';
import type { JobEntry } from '../platform/job-state.ts';
import { JobStates, openEntry, withRoute } from '../platform/job-state.ts';
import { Bus } from '../platform/nats/bus.ts';
import type { ObjectBucket } from '../platform/nats/objects.ts';
import type { NatsServer } from '../platform/nats-server.ts';
import { startNatsServer } from '../platform/nats-server.ts';
import type { Child } from '../platform/process.ts';
import { startChild, stopChild } from '../platform/process.ts';
import type { JobEventKind, JobRef } from '../platform/topology.ts';
import { objectKey, subjects } from '../platform/topology.ts';
import { envelopeFor, expectValue, statementOf, trustStoreOf } from '../trust/fixture.ts';
import type { PluginStatement, TrustStoreContent } from '../trust/index.ts';
import {
  DEFAULT_LIMITS,
  encodePolicy,
  encodeTrustStore,
  generateKey,
  parseTrustStore,
  publicKeyToPem,
  runtimeOfFileName,
  signTrustStore,
} from '../trust/index.ts';

const dayMs = 86_400_000;
const mebibyte = 1024 * 1024;
export const tenant = 'acme';
export const key = generateKey();
const root = generateKey();

export interface WorkRequest {
  readonly name: string;
  readonly source: string | Uint8Array;
  readonly spec?: Partial<JobRouted['spec']>;
  readonly entry?: Partial<JobEntry>;
  readonly job?: Partial<JobRouted>;
  readonly statement?: Partial<PluginStatement>;
  /** False leaves the plugin out of the store. */
  readonly stored?: boolean;
}

export class ExecutorFixture {
  readonly folder: string;
  readonly bus: Bus;
  readonly states: JobStates;
  readonly plugins: ObjectBucket;
  readonly artifacts: ObjectBucket;
  readonly #url: string;
  #server: NatsServer;
  readonly #children: Child[] = [];
  store: TrustStoreContent = trustStoreOf(key);

  private constructor(
    folder: string,
    server: NatsServer,
    bound: { bus: Bus; states: JobStates; plugins: ObjectBucket; artifacts: ObjectBucket },
  ) {
    this.folder = folder;
    this.#server = server;
    this.#url = server.url;
    this.bus = bound.bus;
    this.states = bound.states;
    this.plugins = bound.plugins;
    this.artifacts = bound.artifacts;
  }

  static async open(): Promise<ExecutorFixture> {
    const folder = await mkdtemp(join(tmpdir(), 'sandbus-executor-'));
    const identity = await everyService(folder);
    const server = await startNatsServer({ storeDir: join(folder, 'nats') });
    const bus = await Bus.connect({ url: server.url, name: 'test', credentials: null, identity });
    await bus.ensureTopology({ replicas: 1, sizeFactor: 0.1 });
    const [states, plugins, artifacts] = await Promise.all([
      JobStates.bind(bus),
      bus.objects('plugins'),
      bus.objects('artifacts'),
    ]);
    const fixture = new ExecutorFixture(folder, server, { bus, states, plugins, artifacts });
    await writeFile(join(folder, 'root.pub'), publicKeyToPem(root.publicKey));
    await fixture.publishTrust(fixture.store);
    await writeFile(join(folder, 'policy.json'), expectValue(encodePolicy(policy)));
    return fixture;
  }

  async publishTrust(content: TrustStoreContent): Promise<void> {
    this.store = content;
    const file = signTrustStore(expectValue(encodeTrustStore(content)), root);
    await writeFile(join(this.folder, 'trust.json.new'), file);
    await rename(join(this.folder, 'trust.json.new'), join(this.folder, 'trust.json'));
  }

  /** Starts an executor and resolves when it says that it is ready. */
  async startExecutor(id: string, environment: Record<string, string> = {}): Promise<Child> {
    const log = await open(join(this.folder, 'executor.log'), 'a');
    const child = await startChild(
      process.execPath,
      [join(installation.root, 'services/cli/main.ts'), 'service', 'executor'],
      {
        env: serviceEnvironment({
          SANDBUS_NATS_URL: this.#url,
          SANDBUS_STATE_DIR: this.folder,
          SANDBUS_EXECUTOR_ID: id,
          SANDBUS_LEASE_MS: '8000',
          SANDBUS_LOG_LEVEL: 'warn',
          ...environment,
        }),
        stdio: ['ignore', 'pipe', log.fd],
      },
    );
    await log.close();
    this.#children.push(child);
    const ready = new Promise<true>((resolve) => child.stdout?.once('data', () => resolve(true)));
    if ((await Promise.race([ready, child.exited])) !== true)
      throw new Error(`the executor did not start:\n${await this.log()}`);
    return child;
  }

  /** Takes the bus away and brings it back, with all that it had stored. */
  async restartNats(): Promise<void> {
    await this.#server.stop();
    const port = Number(new URL(this.#url).port);
    this.#server = await startNatsServer({ storeDir: join(this.folder, 'nats'), port });
  }

  /** What the executors have said. */
  log(): Promise<string> {
    return readFile(join(this.folder, 'executor.log'), 'utf8');
  }

  /** Gives out a job as verifier and router do. */
  async route(request: WorkRequest): Promise<JobRef> {
    const job = newJob();
    const bytes = Buffer.from(request.source);
    const sha256 = digest(bytes);
    if (request.stored !== false) await this.plugins.put(objectKey(job.tenant, sha256), [bytes]);
    const runtime = runtimeOfFileName(request.name);
    const event = this.#routed(job, request, { bytes, sha256, runtime });
    const entry = openEntry(job, {
      submissionSequence: 1,
      traceparent: null,
      deadline: event.spec.deadline,
      maxAttempts: event.spec.maxAttempts,
    });
    const { deviceClass } = event;
    await this.states.create({ ...withRoute(entry, { runtime, deviceClass }), ...request.entry });
    const subject = subjects.work({ runtime, deviceClass }, job);
    const about = {
      subject,
      id: `router:test:${job.jobId}`,
      cause: { stream: 'JOBS', sequence: 0 },
      traceparent: null,
    };
    await publishEvent(this.bus, outgoing('JobRouted', event, about));
    this.bus.notify(subjects.wake({ runtime, deviceClass }));
    return job;
  }

  #routed(
    job: JobRef,
    request: WorkRequest,
    plugin: { bytes: Uint8Array; sha256: string; runtime: Runtime },
  ): JobRouted {
    const { bytes, sha256, runtime } = plugin;
    const statement = statementOf(request.name, sha256, most);
    const trust = expectValue(parseTrustStore(expectValue(encodeTrustStore(this.store))));
    return {
      ...job,
      routedAt: Date.now() * 1000,
      plugin: { name: request.name, sha256, size: bytes.length },
      envelope: envelopeFor({ ...statement, ...request.statement }, [key]),
      trustStoreVersion: trust.version,
      trustStoreDigest: trust.digest,
      runtime,
      deviceClass: 'cpu',
      evidence: [{ source: 'statement', runtime, detail: runtime }],
      decidedBy: 'statement',
      spec: {
        args: [],
        env: {},
        stdin: null,
        inputs: [],
        limits: DEFAULT_LIMITS,
        requiresGpu: false,
        network: 'none',
        maxAttempts: 1,
        deadline: (Date.now() + dayMs) * 1000,
        labels: {},
        ...request.spec,
      },
      ...request.job,
    };
  }

  /** The job's terminal event, as its state holds it; waits for it. */
  async ended(job: JobRef, limitMs = 20_000): Promise<JobEntry> {
    return eventually(
      `end of ${job.jobId}`,
      async () => {
        // Some tests take the bus away meanwhile.
        const snapshot = await this.states.read(job).catch(() => null);
        return snapshot?.entry.state === 'ended' ? snapshot.entry : null;
      },
      limitMs,
    );
  }

  async finished(job: JobRef, limitMs?: number): Promise<JobFinished> {
    return this.#terminal('JobFinished', job, limitMs);
  }

  async rejected(job: JobRef, limitMs?: number): Promise<Events['JobRejected']> {
    return this.#terminal('JobRejected', job, limitMs);
  }

  async #terminal<N extends 'JobFinished' | 'JobRejected'>(
    name: N,
    job: JobRef,
    limitMs?: number,
  ): Promise<Events[N]> {
    const { terminal } = await this.ended(job, limitMs);
    return decodeAs(name, Buffer.from(terminal?.data ?? '', 'base64'));
  }

  /** All events of one kind on the bus, decoded. */
  async published<N extends 'JobStarted' | 'JobFinished'>(
    name: N,
    kind: Extract<JobEventKind, 'started' | 'finished' | 'superseded'>,
    job: JobRef,
  ): Promise<Events[N][]> {
    const found: Events[N][] = [];
    const subject = subjects.job(kind, job);
    for (let next = 1; ; ) {
      const message = await this.bus.nextMessage('JOBS', next, subject);
      if (message === null) return found;
      found.push(decodeAs(name, message.data));
      next = message.sequence + 1;
    }
  }

  async logChunks(job: JobRef): Promise<LogChunk[]> {
    const found: LogChunk[] = [];
    for (let next = 1; ; ) {
      const message = await this.bus.nextMessage('LOGS', next, subjects.logsOf(job));
      if (message === null) return found;
      found.push(decodeAs('LogChunk', message.data));
      next = message.sequence + 1;
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.#children.map((child) => stopChild(child, 15_000)));
    await this.bus.close();
    await this.#server.stop();
    await rm(this.folder, { recursive: true, force: true });
  }
}

export async function eventually<T>(
  what: string,
  look: () => Promise<T | null>,
  limitMs = 10_000,
): Promise<T> {
  const giveUpAt = performance.now() + limitMs;
  for (;;) {
    const found = await look();
    if (found !== null) return found;
    if (performance.now() > giveUpAt) throw new Error(`not within ${limitMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

export const digest = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');
export const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString('utf8');

/** A fresh UUIDv7. */
export function newJob(): JobRef {
  const time = Date.now().toString(16).padStart(12, '0');
  const random = randomBytes(10).toString('hex');
  const jobId = `${time.slice(0, 8)}-${time.slice(8)}-7${random.slice(0, 3)}-8${random.slice(3, 6)}-${random.slice(6, 18)}`;
  return { tenant, jobId };
}

const policy = {
  default: {
    memoryBytes: 8192 * mebibyte,
    cpuMillis: 4000,
    wallMs: 300_000,
    cpuTimeMs: null,
    processes: 512,
    outputBytes: 64 * mebibyte,
    tmpBytes: 256 * mebibyte,
    network: true,
    gpu: true,
    concurrency: 8,
    maxAttempts: 3,
  },
};

/** More than any test asks for. */
const most = {
  network: 'host',
  limits: { memoryBytes: 8192 * mebibyte, cpuMillis: 2000, wallMs: 120_000, processes: 256 },
} as const;

/** Processes with this in their environment. */
export async function marked(mark: string): Promise<string[]> {
  const found: string[] = [];
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    const environment = await readFile(`/proc/${pid}/environ`, 'latin1').catch(() => '');
    if (environment.includes(mark)) found.push(pid);
  }
  return found;
}
