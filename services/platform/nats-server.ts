/** The embedded nats-server: a child process on loopback, with JetStream, for one machine and for tests. */
import { existsSync } from 'node:fs';
import { mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { UsageError } from './errors.ts';
import { writeFileSafely } from './files.ts';
import type { Child, Exit } from './process.ts';
import { startChild, stopChild } from './process.ts';

export interface NatsServerOptions {
  /** JetStream's files, configuration and log; made when missing. */
  readonly storeDir: string;
  /** 0 takes any free port. */
  readonly port?: number;
  /** This node's place in a cluster on this machine; none unless given. */
  readonly cluster?: ClusterPlace;
  /** Who may connect, as renderAccounts says it; without it, whoever reaches the port. */
  readonly accounts?: string;
  /** Program to run; found on PATH or in /usr/sbin unless given. */
  readonly program?: string;
}

export interface ClusterPlace {
  /** Name of the node, unique in the cluster. */
  readonly node: string;
  /** Which of `routePorts` is this node's own. */
  readonly index: number;
  /** Where the nodes talk to each other. */
  readonly routePorts: readonly number[];
}

export interface NatsServer {
  readonly url: string;
  readonly pid: number;
  readonly exited: Promise<Exit>;
  kill(signal: NodeJS.Signals): void;
  /** Takes new accounts; connections of users that stay are kept. */
  setAccounts(accounts: string): Promise<void>;
  stop(): Promise<void>;
}

const startDeadlineMs = 30_000;
const stopGraceMs = 5_000;
const reloadDeadlineMs = 5_000;

/** Starts a server and resolves when it accepts connections. Throws UsageError when there is none or it fails. */
export async function startNatsServer(options: NatsServerOptions): Promise<NatsServer> {
  const program = options.program ?? findNatsServer();
  await mkdir(options.storeDir, { recursive: true, mode: 0o700 });
  const configFile = join(options.storeDir, 'nats-server.conf');
  const accountsFile = join(options.storeDir, 'accounts.conf');
  if (options.accounts !== undefined) await writeFileSafely(accountsFile, options.accounts, 0o600);
  await writeFile(configFile, serverConfig(options), { mode: 0o600 });
  const child = await startChild(program, ['-c', configFile], {
    env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' },
    stdio: ['ignore', 'ignore', 'pipe'],
    ownGroup: true,
    diesWithParent: true,
  });
  // What is wrong with its configuration it says here; the rest goes into its log.
  let complaint = '';
  child.stderr?.on('data', (bytes) => {
    complaint = `${complaint}${bytes}`.slice(0, 4096);
  });
  const url = await listeningUrl(child, options, () => complaint);
  const stop = async () => void (await stopChild(child, stopGraceMs));
  const setAccounts = async (accounts: string) => {
    await writeFileSafely(accountsFile, accounts, 0o600);
    await reload(child, options.storeDir);
  };
  return { url, pid: child.pid, exited: child.exited, kill: child.kill, setAccounts, stop };
}

/** Path of nats-server. Throws UsageError with the mend when there is none. */
export function findNatsServer(path = '/usr/local/bin:/usr/bin:/bin'): string {
  const folders = [...path.split(delimiter), '/usr/sbin', '/usr/local/sbin'];
  const found = folders.map((folder) => join(folder, 'nats-server')).find((file) => existsSync(file));
  if (found === undefined)
    throw new UsageError(
      'nats-server is not installed: `apt-get install nats-server`, or set SANDBUS_NATS_URL to a server',
    );
  return found;
}

function serverConfig(options: NatsServerOptions): string {
  const port = options.port === undefined || options.port === 0 ? -1 : options.port;
  return [
    `listen: "127.0.0.1:${port}"`,
    'max_payload: 1MB',
    `ports_file_dir: ${JSON.stringify(options.storeDir)}`,
    `log_file: ${JSON.stringify(join(options.storeDir, 'nats-server.log'))}`,
    'logfile_size_limit: 8MB',
    `jetstream { store_dir: ${JSON.stringify(join(options.storeDir, 'jetstream'))} }`,
    ...(options.accounts === undefined ? [] : ['include "accounts.conf"']),
    ...clusterConfig(options.cluster),
    '',
  ].join('\n');
}

function clusterConfig(place: ClusterPlace | undefined): string[] {
  if (place === undefined) return [];
  const routes = place.routePorts.map((port) => `nats://127.0.0.1:${port}`);
  return [
    `server_name: ${JSON.stringify(place.node)}`,
    `cluster { name: sandbus, listen: "127.0.0.1:${place.routePorts[place.index]}", routes: ${JSON.stringify(routes)} }`,
  ];
}

/** The server writes the ports that it got into a file named after its process. */
async function listeningUrl(
  child: Child,
  options: NatsServerOptions,
  complaint: () => string,
): Promise<string> {
  const portsFile = join(options.storeDir, `nats-server_${child.pid}.ports`);
  let exit: Exit | null = null;
  void child.exited.then((e) => {
    exit = e;
  });
  const giveUpAt = performance.now() + startDeadlineMs;
  while (exit === null && performance.now() < giveUpAt) {
    const url = await readFile(portsFile, 'utf8').then(firstUrl, () => null);
    if (url !== null) {
      await rm(portsFile, { force: true });
      return url;
    }
    await delay(20);
  }
  child.kill('SIGKILL');
  const log = await readFile(join(options.storeDir, 'nats-server.log'), 'utf8').catch(() => '');
  const said = `${complaint()}${log.split('\n').slice(-6).join('\n')}`;
  throw new UsageError(`nats-server did not start${mendFor(said)}:\n${said}`);
}

/** What to do about the commonest reason. */
function mendFor(said: string): string {
  return /address already in use/.test(said)
    ? ' because its port is taken; `--port 0` takes any free one'
    : '';
}

/** Has the server read its configuration again. Throws UsageError with what it says against it. */
async function reload(child: Child, storeDir: string): Promise<void> {
  const log = join(storeDir, 'nats-server.log');
  const before = (await stat(log).catch(() => null))?.size ?? 0;
  child.kill('SIGHUP');
  for (const giveUpAt = performance.now() + reloadDeadlineMs; performance.now() < giveUpAt; await delay(20)) {
    const bytes = await readFile(log).catch(() => Buffer.alloc(0));
    // A log that has become shorter was begun anew.
    const said = bytes.subarray(bytes.length < before ? 0 : before).toString('utf8');
    if (/Reloaded server configuration/.test(said)) return;
    const [refusal] = /Failed to reload server configuration.*/.exec(said) ?? [];
    if (refusal !== undefined) throw new UsageError(`nats-server: ${refusal}`);
  }
  throw new UsageError('nats-server does not say that it has read its new accounts');
}

/** Null while the file is half written. */
function firstUrl(text: string): string | null {
  try {
    return (JSON.parse(text) as { nats?: string[] }).nats?.[0] ?? null;
  } catch {
    return null;
  }
}
