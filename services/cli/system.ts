/** The whole system on one machine: an embedded nats-server and the four services, each its own process. */
import { createReadStream } from 'node:fs';
import { mkdir, open, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { ensureLogKey, logKeyFiles } from '../ledger/log-key.ts';
import { ensureAccess } from '../platform/access.ts';
import { tenantCredentials, userCredentials } from '../platform/access-paths.ts';
import { installation, serviceEnvironment } from '../platform/config.ts';
import { UsageError } from '../platform/errors.ts';
import { renderAccounts } from '../platform/nats-accounts.ts';
import { nodeFlags } from '../platform/node-flags.ts';
import type { Child } from '../platform/process.ts';
import { startChild, stopChild } from '../platform/process.ts';
import { ensureServiceKeys } from '../platform/service-keys.ts';
import type { ServiceName } from '../platform/topology.ts';
import { serviceNames } from '../platform/topology.ts';
import { watchAccess } from './access-watch.ts';
import { makeFolder, tryLock } from './files.ts';
import type { Started } from './kept-process.ts';
import { describeExit, KeptProcess } from './kept-process.ts';
import type { NatsNodes } from './nats-nodes.ts';
import { keptNatsNodes } from './nats-nodes.ts';
import { ServerWatch } from './server-watch.ts';
import type { TopologyKeeper } from './topology-keeper.ts';
import { keepTopology } from './topology-keeper.ts';

export interface SystemOptions {
  /** Ledger, JetStream files, caches, logs; made when missing. */
  readonly stateDir: string;
  /** Port of the embedded server; 0 takes any free one. */
  readonly port: number;
  /** `inherit` prints the services' logs on standard error, `files` keeps them in <state>/logs. */
  readonly logs: 'inherit' | 'files';
  /** More environment for the services; undefined takes a variable away. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
  /** Tenants that are let in from the start, besides those that were before; `default` unless set. */
  readonly tenants?: readonly string[];
  readonly replicas?: number;
  readonly sizeFactor?: number;
  /** nats-server program; found on this machine unless given. */
  readonly natsProgram?: string | undefined;
  /** Servers of a NATS cluster on this machine; 1 unless given. With three, `replicas` may be three. */
  readonly nodes?: number;
  /** host:port where the audit service answers queries; nowhere unless given. */
  readonly queryAddress?: string | undefined;
  /** How many executors share the work; 1 unless given. */
  readonly executors?: number;
  /** How long the server may answer nothing before it is started again, milliseconds. */
  readonly serverPatienceMs?: number;
  /** How long the executors let running jobs go on when they are stopped (SANDBUS_GRACE_MS), milliseconds. */
  readonly graceMs?: number;
  /** Told when something starts, dies or is started again. */
  readonly onEvent?: (text: string) => void;
}

export type Part = ServiceName | 'nats-server' | `nats-server-${number}` | `executor-${number}`;

export interface System {
  readonly url: string;
  /** File with the credentials of a tenant. */
  credentialsOf(tenant: string): string;
  /** Process id of a part as it runs now; 0 while it does not. A second executor is `executor-2`. */
  pidOf(part: Part): number;
  /** Resolves when a part does not stay up although it was started again and again. */
  readonly failed: Promise<string>;
  /** Stops the executors, which let running jobs end within the grace time, then the other services and the server. */
  stop(): Promise<void>;
  /** While it stops: running jobs are ended at once, and recorded as ended. */
  hurry(): void;
}

export const defaultGraceMs = 10_000;
/** For an executor's last words, and for every other service. */
const afterGraceMs = 10_000;
const readyDeadlineMs = 30_000;

/**
 * Starts everything and resolves when all services are ready. Whatever was started is stopped when one fails; what
 * dies later is started again.
 */
export async function startAll(options: SystemOptions): Promise<System> {
  await makeFolder(options.stateDir);
  const lock = await lockState(options.stateDir);
  const services: KeptProcess[] = [];
  const nats = await keptNatsNodes(options);
  let topology: TopologyKeeper | null = null;
  let stopWatching = () => {};
  const stop = async () => {
    stopWatching();
    // First, so that the others still record how the last jobs end.
    await Promise.all(executorsOf(services).map((service) => service.stop()));
    await Promise.all(services.map((service) => service.stop()));
    await topology?.stop();
    await nats.stop();
    await lock.release();
  };
  try {
    await ensureServiceKeys(options.stateDir);
    await ensureLogKey(logKeyFiles(options.stateDir));
    const access = await ensureAccess(options.stateDir, options.tenants ?? ['default']);
    await nats.start(renderAccounts(access));
    stopWatching = watchAccess(options.stateDir, access, nats, options.onEvent ?? (() => undefined));
    topology = await keepTopology(nats.url(), { ...options, watch: serverWatch(nats, options) });
    options.onEvent?.(`nats-server listens on ${nats.url()}`);
    for (const { name, label } of serviceInstances(options))
      services.push(keptService(name, label, nats.url(), options));
    await Promise.all(services.map((service) => service.start()));
  } catch (error) {
    await stop();
    throw error;
  }
  const all = [...nats.processes, ...services];
  return {
    url: nats.url(),
    credentialsOf: (tenant) => tenantCredentials(options.stateDir, tenant),
    pidOf: (part) => all.find(({ name }) => name === part)?.pid ?? 0,
    failed: Promise.race(all.map(({ givenUp }) => givenUp)),
    stop,
    hurry: () => {
      for (const executor of executorsOf(services)) executor.hurry();
    },
  };
}

/** In a cluster the other nodes go on, and a node that answers nothing may be without a majority. */
function serverWatch({ processes }: NatsNodes, options: SystemOptions): ServerWatch | null {
  const [only, second] = processes;
  if (only === undefined || second !== undefined) return null;
  return new ServerWatch({
    logFile: join(options.stateDir, 'nats', 'nats-server.log'),
    onEvent: options.onEvent ?? (() => undefined),
    restart: () => only.restart(),
    patienceMs: options.serverPatienceMs,
  });
}

const executorsOf = (services: readonly KeptProcess[]): KeptProcess[] =>
  services.filter(({ name }) => name.startsWith('executor'));

function serviceInstances({ executors = 1 }: SystemOptions): { name: ServiceName; label: string }[] {
  const more = Array.from({ length: executors - 1 }, (_, index) => `executor-${index + 2}`);
  return [
    ...serviceNames.map((name) => ({ name, label: name })),
    ...more.map((label) => ({ name: 'executor' as const, label })),
  ];
}

function keptService(name: ServiceName, label: string, url: string, options: SystemOptions): KeptProcess {
  return new KeptProcess({
    name: label,
    onEvent: (text) => options.onEvent?.(`service ${text}`),
    start: () => startService(name, label, url, options),
  });
}

/** Resolves when the service has said that it is ready. */
async function startService(
  name: ServiceName,
  label: string,
  url: string,
  options: SystemOptions,
): Promise<Started> {
  const log = await openLog(options, label);
  const main = join(installation.root, 'services/cli/main.ts');
  const child = await startChild(process.execPath, [...nodeFlags(name), main, 'service', name], {
    env: serviceEnvironment({
      ...options.environment,
      SANDBUS_NATS_URL: url,
      SANDBUS_STATE_DIR: options.stateDir,
      SANDBUS_NATS_CREDS: userCredentials(options.stateDir, name),
      // Four services cannot share one address.
      SANDBUS_HEALTH_ADDRESS: undefined,
      // It may hold a password.
      ...(name === 'audit' ? {} : { SANDBUS_LEDGER_URL: undefined }),
      SANDBUS_QUERY_ADDRESS: name === 'audit' ? options.queryAddress : undefined,
    }),
    stdio: ['ignore', 'pipe', log?.fd ?? 'inherit'],
    ownGroup: true,
    diesWithParent: true,
  }).finally(() => log?.close());
  await untilReady(child, label, options);
  const graceMs = (options.graceMs ?? defaultGraceMs) + afterGraceMs;
  const stop = async () => void (await stopChild(child, graceMs));
  return { pid: child.pid, exited: child.exited, stop, hurry: () => child.kill('SIGTERM') };
}

async function untilReady(child: Child, label: string, options: SystemOptions): Promise<void> {
  const lines = createInterface({ input: child.stdout ?? createReadStream('/dev/null') });
  const said = new Promise<true>((resolve) =>
    lines.on('line', (line) => line.includes('"ready"') && resolve(true)),
  );
  const timer = setTimeout(() => child.kill('SIGKILL'), readyDeadlineMs);
  const ended = await Promise.race([said, child.exited]).finally(() => clearTimeout(timer));
  if (ended === true) return;
  const file = join(options.stateDir, 'logs', `${label}.log`);
  const log = options.logs === 'files' ? await readFile(file, 'utf8').catch(() => '') : '';
  throw new UsageError(`service ${label} did not start (${describeExit(ended)})\n${lastLines(log)}`, 1);
}

async function openLog(options: SystemOptions, name: string) {
  if (options.logs === 'inherit') return null;
  const folder = join(options.stateDir, 'logs');
  await mkdir(folder, { recursive: true });
  return open(join(folder, `${name}.log`), 'a', 0o600);
}

/** One system per state folder. The file with the process id is for whoever is told that there is one. */
async function lockState(stateDir: string): Promise<{ release: () => Promise<void> }> {
  const [lockFile, pidFile] = [join(stateDir, 'up.lock'), join(stateDir, 'up.pid')];
  const lock = await tryLock(lockFile);
  if (lock === null) {
    const pid = (await readFile(pidFile, 'utf8').catch(() => '')).trim();
    const which = pid === '' ? '' : ` with process id ${pid}`;
    throw new UsageError(`${stateDir} is in use by \`sandbus up\`${which}`, 1);
  }
  await writeFile(pidFile, `${process.pid}\n`, { mode: 0o600 });
  return {
    release: async () => {
      await rm(pidFile, { force: true });
      lock.close();
    },
  };
}

const lastLines = (text: string): string => text.trimEnd().split('\n').slice(-5).join('\n');
