/** The whole system on one machine: an embedded nats-server and the four services, each its own process. */
import { createReadStream } from 'node:fs';
import { mkdir, open, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { ensureAccess } from '../platform/access.ts';
import { tenantCredentials, userCredentials } from '../platform/access-paths.ts';
import { installation, serviceEnvironment } from '../platform/config.ts';
import { messageOf, UsageError } from '../platform/errors.ts';
import { Bus } from '../platform/nats/bus.ts';
import { renderAccounts } from '../platform/nats-accounts.ts';
import { inboxPrefix } from '../platform/nats-permissions.ts';
import type { NatsServer } from '../platform/nats-server.ts';
import { startNatsServer } from '../platform/nats-server.ts';
import type { Child, Exit } from '../platform/process.ts';
import { startChild, stopChild } from '../platform/process.ts';
import { ensureServiceKeys } from '../platform/service-keys.ts';
import type { ServiceName } from '../platform/topology.ts';
import { serviceNames } from '../platform/topology.ts';
import { watchAccess } from './access-watch.ts';

export interface SystemOptions {
  /** Ledger, JetStream files, caches, logs; made when missing. */
  readonly stateDir: string;
  /** Port of the embedded server; 0 takes any free one. */
  readonly port: number;
  /** `inherit` prints the services' logs on standard error, `files` keeps them in <state>/logs. */
  readonly logs: 'inherit' | 'files';
  /** More environment for the services. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Tenants that are let in from the start, besides those that were before; `default` unless set. */
  readonly tenants?: readonly string[];
  readonly replicas?: number;
  readonly sizeFactor?: number;
  /** Told when something starts, dies or is started again. */
  readonly onEvent?: (text: string) => void;
}

export interface System {
  readonly url: string;
  readonly natsPid: number;
  /** File with the credentials of a tenant. */
  credentialsOf(tenant: string): string;
  /** Process id of a service as it runs now. */
  pidOf(service: ServiceName): number;
  /** Resolves when nats-server has ended by itself: nothing works then. */
  readonly failed: Promise<string>;
  /** Stops the services, which drain, then the server. */
  stop(): Promise<void>;
}

const stopGraceMs = 20_000;
const readyDeadlineMs = 30_000;
const restartDelayMs = 1_000;

/** Starts everything and resolves when all four services are ready. Whatever was started is stopped when one fails. */
export async function startAll(options: SystemOptions): Promise<System> {
  await mkdir(options.stateDir, { recursive: true, mode: 0o700 });
  const lock = await lockState(options.stateDir);
  const onEvent = options.onEvent ?? (() => undefined);
  let nats: NatsServer | null = null;
  const services: ManagedService[] = [];
  let stopWatching = () => {};
  const stop = async () => {
    stopWatching();
    await Promise.all(services.map((service) => service.stop()));
    await nats?.stop();
    await lock.release();
  };
  try {
    await ensureServiceKeys(options.stateDir);
    const access = await ensureAccess(options.stateDir, options.tenants ?? ['default']);
    nats = await startNatsServer({
      storeDir: join(options.stateDir, 'nats'),
      port: options.port,
      accounts: renderAccounts(access),
    });
    stopWatching = watchAccess(options.stateDir, access, nats, onEvent);
    await makeTopology(nats.url, options);
    onEvent(`nats-server listens on ${nats.url}`);
    for (const name of serviceNames) services.push(new ManagedService(name, nats.url, options));
    await Promise.all(services.map((service) => service.start()));
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    url: nats.url,
    natsPid: nats.pid,
    credentialsOf: (tenant) => tenantCredentials(options.stateDir, tenant),
    pidOf: (name) => services.find((service) => service.name === name)?.pid ?? 0,
    failed: nats.exited.then(
      (exit) => `nats-server ended (${describe(exit)}): see its log in ${options.stateDir}/nats`,
    ),
    stop,
  };
}

async function makeTopology(url: string, options: SystemOptions): Promise<void> {
  const bus = await Bus.connect({
    url,
    name: 'deployment',
    credentials: userCredentials(options.stateDir, 'deployment'),
    inboxPrefix: inboxPrefix('deployment'),
  });
  await bus.ensureTopology({ replicas: options.replicas ?? 1, sizeFactor: options.sizeFactor ?? 1 });
  await bus.close();
}

/** A service process that is started again when it dies. */
class ManagedService {
  readonly name: ServiceName;
  readonly #url: string;
  readonly #options: SystemOptions;
  #child: Child | null = null;
  #stopping = false;
  #restart: NodeJS.Timeout | undefined;

  constructor(name: ServiceName, url: string, options: SystemOptions) {
    this.name = name;
    this.#url = url;
    this.#options = options;
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  /** Resolves when the service has said that it is ready. */
  async start(): Promise<void> {
    const log = await openLog(this.#options, this.name);
    try {
      const main = join(installation.root, 'services/cli/main.ts');
      this.#child = await startChild(process.execPath, [main, 'service', this.name], {
        env: serviceEnvironment({
          ...this.#options.environment,
          SANDBUS_NATS_URL: this.#url,
          SANDBUS_STATE_DIR: this.#options.stateDir,
          SANDBUS_NATS_CREDS: userCredentials(this.#options.stateDir, this.name),
        }),
        stdio: ['ignore', 'pipe', log?.fd ?? 'inherit'],
        ownGroup: true,
        diesWithParent: true,
      });
    } finally {
      await log?.close();
    }
    const child = this.#child;
    await this.#ready(child);
    void child.exited.then((exit) => this.#onExit(exit));
  }

  async #ready(child: Child): Promise<void> {
    const lines = createInterface({ input: child.stdout ?? createReadStream('/dev/null') });
    const said = new Promise<true>((resolve) =>
      lines.on('line', (line) => line.includes('"ready"') && resolve(true)),
    );
    const timer = setTimeout(() => child.kill('SIGKILL'), readyDeadlineMs);
    const ended = await Promise.race([said, child.exited]).finally(() => clearTimeout(timer));
    if (ended === true) return;
    const file = join(this.#options.stateDir, 'logs', `${this.name}.log`);
    const log = this.#options.logs === 'files' ? await readFile(file, 'utf8').catch(() => '') : '';
    throw new UsageError(`service ${this.name} did not start (${describe(ended)})\n${lastLines(log)}`, 1);
  }

  #onExit(exit: Exit): void {
    if (this.#stopping) return;
    this.#options.onEvent?.(`service ${this.name} ended (${describe(exit)}); starting it again`);
    this.#restart = setTimeout(() => {
      this.start().catch((error: unknown) => {
        this.#options.onEvent?.(messageOf(error));
        this.#onExit({ code: 1, signal: null });
      });
    }, restartDelayMs);
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    clearTimeout(this.#restart);
    if (this.#child !== null) await stopChild(this.#child, stopGraceMs);
  }
}

async function openLog(options: SystemOptions, name: string) {
  if (options.logs === 'inherit') return null;
  const folder = join(options.stateDir, 'logs');
  await mkdir(folder, { recursive: true });
  return open(join(folder, `${name}.log`), 'a', 0o600);
}

/** One system per state folder. A lock whose process is gone is taken over. */
async function lockState(stateDir: string): Promise<{ release: () => Promise<void> }> {
  const file = join(stateDir, 'up.pid');
  for (;;) {
    try {
      await writeFile(file, `${process.pid}\n`, { flag: 'wx', mode: 0o600 });
      return { release: () => rm(file, { force: true }) };
    } catch {
      const pid = Number((await readFile(file, 'utf8').catch(() => '')).trim());
      if (pid > 0 && isAlive(pid))
        throw new UsageError(`${stateDir} is in use by \`sandbus up\` with process id ${pid}`, 1);
      await rm(file, { force: true });
    }
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

const describe = (exit: Exit): string => (exit.signal === null ? `exit code ${exit.code}` : `${exit.signal}`);
const lastLines = (text: string): string => text.trimEnd().split('\n').slice(-5).join('\n');
