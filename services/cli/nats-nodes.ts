/** The embedded NATS: one server, or a cluster of several on this machine. Each node comes back with its port and files. */
import { createServer } from 'node:net';
import { join } from 'node:path';
import type { NatsServer } from '../platform/nats-server.ts';
import { startNatsServer } from '../platform/nats-server.ts';
import { KeptProcess } from './kept-process.ts';

export interface NatsNodesOptions {
  readonly stateDir: string;
  /** Of the first node; 0 takes any free one. */
  readonly port: number;
  readonly nodes?: number;
  readonly natsProgram?: string | undefined;
  readonly onEvent?: (text: string) => void;
}

export interface NatsNodes {
  /** `nats-server`, `nats-server-2`, … */
  readonly processes: readonly KeptProcess[];
  /** `accounts` says who may connect, now and after each restart. */
  start(accounts: string): Promise<void>;
  /** Takes new accounts; connections of users that stay are kept. */
  setAccounts(accounts: string): Promise<void>;
  /** All nodes, separated by commas. */
  url(): string;
  stop(): Promise<void>;
}

export async function keptNatsNodes(options: NatsNodesOptions): Promise<NatsNodes> {
  const { nodes = 1 } = options;
  const routePorts = nodes === 1 ? [] : await freePorts(nodes);
  const shared: Shared = { accounts: '' };
  const kept = Array.from({ length: nodes }, (_, index) => keptNode(options, index, { routePorts, shared }));
  const processes = kept.map(({ process }) => process);
  return {
    processes,
    start: async (accounts) => {
      shared.accounts = accounts;
      await Promise.all(processes.map((process) => process.start()));
    },
    setAccounts: async (accounts) => {
      shared.accounts = accounts;
      await Promise.all(kept.map((node) => node.setAccounts(accounts)));
    },
    url: () => kept.map((node) => node.url()).join(','),
    stop: async () => void (await Promise.all(processes.map((process) => process.stop()))),
  };
}

/** What all nodes have in common, and a restarted one must know again. */
interface Shared {
  accounts: string;
}

function keptNode(
  options: NatsNodesOptions,
  index: number,
  { routePorts, shared }: { routePorts: readonly number[]; shared: Shared },
) {
  let running: NatsServer | null = null;
  const name = index === 0 ? 'nats-server' : `nats-server-${index + 1}`;
  let url: string | null = null;
  const process = new KeptProcess({
    name,
    onEvent: options.onEvent ?? (() => undefined),
    start: async () => {
      const firstPort = index === 0 ? options.port : 0;
      const server = await startNatsServer({
        storeDir: join(options.stateDir, index === 0 ? 'nats' : `nats-${index + 1}`),
        accounts: shared.accounts,
        port: url === null ? firstPort : Number(new URL(url).port),
        ...(options.natsProgram === undefined ? {} : { program: options.natsProgram }),
        ...(routePorts.length === 0 ? {} : { cluster: { node: name, index, routePorts } }),
      });
      url = server.url;
      running = server;
      return server;
    },
  });
  // One that is down reads them when it starts.
  const setAccounts = async (accounts: string) => {
    if (process.pid !== 0) await running?.setAccounts(accounts);
  };
  return { process, url: () => url ?? '', setAccounts };
}

/** Nodes must know each other's ports before they start. */
async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer();
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      return server;
    }),
  );
  const ports = servers.map((server) => (server.address() as { port: number }).port);
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}
