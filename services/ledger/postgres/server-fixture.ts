/** A PostgreSQL server of its own for tests: a folder and a port that are gone with it. */
import { existsSync, readdirSync } from 'node:fs';
import { chmod, chown, mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { OperationalError, UsageError } from '../../platform/errors.ts';
import type { Child } from '../../platform/process.ts';
import { readAll, startChild } from '../../platform/process.ts';

export interface PostgresServer {
  /** A new, empty database; returns its URL. */
  database(): Promise<string>;
  /** For what a test does behind the ledger's back. */
  query(url: string, sql: string, values?: readonly unknown[]): Promise<Record<string, unknown>[]>;
  stop(): Promise<void>;
}

export const debianPackage = 'postgresql';
const startDeadlineMs = 30_000;
const stopGraceMs = 10_000;
/** Whom it runs as when the tests are root's, which PostgreSQL refuses. */
const nobody = 65534;

/** Folder of the programs: Debian's newest version, else wherever `initdb` is found; null where there is none. */
export function findPostgres(path = '/usr/local/bin:/usr/bin:/bin'): string | null {
  const debian = '/usr/lib/postgresql';
  const versions = existsSync(debian) ? readdirSync(debian).toSorted((a, b) => Number(b) - Number(a)) : [];
  const folders = [...versions.map((version) => join(debian, version, 'bin')), ...path.split(':')];
  return (
    folders.find((folder) => existsSync(join(folder, 'initdb')) && existsSync(join(folder, 'postgres'))) ??
    null
  );
}

export async function startPostgres(): Promise<PostgresServer> {
  const programs = findPostgres();
  if (programs === null)
    throw new UsageError(`PostgreSQL is not there: install Debian's package ${debianPackage}`);
  const folder = await mkdtemp(join(tmpdir(), 'sandbus-postgres-'));
  if (process.getuid?.() === 0) await chown(folder, nobody, nobody);
  await chmod(folder, 0o700);
  const data = join(folder, 'data');
  await initialise(programs, folder, data);
  const port = await freePort();
  const settings = [
    '-c',
    'listen_addresses=127.0.0.1',
    '-c',
    'unix_socket_directories=',
    '-c',
    `port=${port}`,
  ];
  const server = await startAsOrdinaryUser(join(programs, 'postgres'), ['-D', data, ...settings], folder);
  const urlOf = (name: string) => `postgres://sandbus@127.0.0.1:${port}/${name}`;
  const stop = async () => {
    await stopServer(server);
    await rm(folder, { recursive: true });
  };
  try {
    await untilReady(urlOf('postgres'), server);
  } catch (error) {
    await stop();
    throw error;
  }
  let databases = 0;
  return {
    database: async () => {
      const name = `ledger_${++databases}`;
      await ask(urlOf('postgres'), `CREATE DATABASE ${name}`);
      return urlOf(name);
    },
    query: ask,
    stop,
  };
}

async function initialise(programs: string, folder: string, data: string): Promise<void> {
  const args = [
    '-D',
    data,
    '--auth=trust',
    '--username=sandbus',
    '--encoding=UTF8',
    '--locale=C',
    '--no-sync',
  ];
  const child = await startAsOrdinaryUser(join(programs, 'initdb'), args, folder);
  const [said, { code }] = await Promise.all([readAll(child.stderr), child.exited]);
  if (code !== 0) throw new Error(`initdb: ${said}`);
}

/** Ends with this process, even when that is killed. */
async function startAsOrdinaryUser(program: string, args: readonly string[], folder: string): Promise<Child> {
  const ids = ['--reuid', String(nobody), '--regid', String(nobody), '--clear-groups'];
  const as = process.getuid?.() === 0 ? ids : [];
  // SIGINT is a fast shutdown; after SIGTERM it would wait for its clients.
  const child = await startChild('/usr/bin/setpriv', ['--pdeathsig', 'INT', ...as, '--', program, ...args], {
    env: { PATH: '/usr/bin:/bin', LC_ALL: 'C' },
    cwd: folder,
    stdio: ['ignore', 'ignore', 'pipe'],
    ownGroup: true,
  });
  child.stderr?.resume();
  return child;
}

async function stopServer(server: Child): Promise<void> {
  server.kill('SIGINT');
  const timer = setTimeout(() => server.kill('SIGQUIT'), stopGraceMs);
  await server.exited.finally(() => clearTimeout(timer));
}

async function untilReady(url: string, server: Child): Promise<void> {
  let ended = false;
  void server.exited.then(() => {
    ended = true;
  });
  for (const giveUpAt = performance.now() + startDeadlineMs; ; await delay(50)) {
    try {
      await ask(url, 'SELECT 1');
      return;
    } catch (error) {
      if (ended || performance.now() > giveUpAt)
        throw new OperationalError('POSTGRES_FAILED', `PostgreSQL does not start: ${String(error)}`);
    }
  }
}

async function ask(
  url: string,
  sql: string,
  values: readonly unknown[] = [],
): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 2000 });
  client.on('error', () => undefined);
  await client.connect();
  try {
    return (await client.query(sql, [...values])).rows;
  } finally {
    await client.end();
  }
}

function freePort(): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const server = createServer().once('error', reject);
  server.listen(0, '127.0.0.1', () => {
    const address = server.address();
    server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0));
  });
  return promise;
}
