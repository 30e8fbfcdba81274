/** The embedded nats-server: a child process on loopback, with JetStream, for one machine and for tests. */
import { existsSync } from 'node:fs';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { UsageError } from './errors.ts';
import type { Child, Exit } from './process.ts';
import { startChild, stopChild } from './process.ts';

export interface NatsServerOptions {
  /** JetStream's files, configuration and log; made when missing. */
  readonly storeDir: string;
  /** 0 takes any free port. */
  readonly port?: number;
  /** This node's place in a cluster on this machine; none unless given. */
  readonly cluster?: ClusterPlace;
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
  stop(): Promise<void>;
}

const startDeadlineMs = 15_000;
const stopGraceMs = 5_000;

/** Starts a server and resolves when it accepts connections. Throws UsageError when there is none or it fails. */
export async function startNatsServer(options: NatsServerOptions): Promise<NatsServer> {
  const program = options.program ?? findNatsServer();
  await mkdir(options.storeDir, { recursive: true, mode: 0o700 });
  const configFile = join(options.storeDir, 'nats-server.conf');
  await writeFile(configFile, serverConfig(options));
  const child = await startChild(program, ['-c', configFile], {
    env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' },
    stdio: ['ignore', 'ignore', 'ignore'],
    ownGroup: true,
    diesWithParent: true,
  });
  const url = await listeningUrl(child, options);
  const stop = async () => void (await stopChild(child, stopGraceMs));
  return { url, pid: child.pid, exited: child.exited, kill: child.kill, stop };
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
async function listeningUrl(child: Child, options: NatsServerOptions): Promise<string> {
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
  throw new UsageError(`nats-server did not start:\n${log.split('\n').slice(-6).join('\n')}`);
}

/** Null while the file is half written. */
function firstUrl(text: string): string | null {
  try {
    return (JSON.parse(text) as { nats?: string[] }).nats?.[0] ?? null;
  } catch {
    return null;
  }
}
