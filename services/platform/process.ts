/** Child processes. The only file that knows node:child_process. */
import type { ChildProcess, StdioOptions } from 'node:child_process';
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import type { Readable, Writable } from 'node:stream';
import { OperationalError } from './errors.ts';

export interface SpawnOptions {
  readonly env: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly stdio: StdioOptions;
  /** Its own process group, so that a Ctrl-C at the terminal reaches the parent alone, which then stops it. */
  readonly ownGroup?: boolean;
  /** SIGTERM when this process dies, even by SIGKILL (util-linux `setpriv --pdeathsig`). */
  readonly diesWithParent?: boolean;
}

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface Child {
  readonly pid: number;
  readonly stdin: Writable | null;
  readonly stdout: Readable | null;
  readonly stderr: Readable | null;
  /** The extra descriptors of `stdio`, from 3 on. */
  readonly streams: ChildProcess['stdio'];
  readonly exited: Promise<Exit>;
  kill(signal: NodeJS.Signals): void;
}

/** Starts a program. Rejects with OperationalError SPAWN_FAILED when it cannot be started. */
export async function startChild(
  program: string,
  args: readonly string[],
  options: SpawnOptions,
): Promise<Child> {
  const [file = program, ...rest] =
    options.diesWithParent === true ? withDeathSignal(program, args) : [program, ...args];
  const child = spawn(file, rest, {
    env: { ...options.env },
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    stdio: options.stdio,
    detached: options.ownGroup ?? false,
  });
  const exited = new Promise<Exit>((resolve) =>
    child.once('exit', (code, signal) => resolve({ code, signal })),
  );
  await new Promise<void>((resolve, reject) => {
    child.once('spawn', resolve);
    child.once('error', (cause) =>
      reject(new OperationalError('SPAWN_FAILED', `cannot start ${program}: ${cause.message}`, { cause })),
    );
  });
  // After the start, an error is a failed kill or a broken pipe; the exit tells the rest.
  child.on('error', () => undefined);
  const { stdin, stdout, stderr, stdio } = child;
  return {
    pid: child.pid ?? 0,
    stdin,
    stdout,
    stderr,
    streams: stdio,
    exited,
    kill: (s) => void child.kill(s),
  };
}

function withDeathSignal(program: string, args: readonly string[]): string[] {
  const setpriv = '/usr/bin/setpriv';
  return existsSync(setpriv) ? [setpriv, '--pdeathsig', 'TERM', '--', program, ...args] : [program, ...args];
}

/** Runs a program to its end and returns what it printed. */
export async function runChild(
  program: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
) {
  const child = await startChild(program, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  const [stdout, stderr, exit] = await Promise.all([
    readAll(child.stdout),
    readAll(child.stderr),
    child.exited,
  ]);
  return { stdout, stderr, ...exit };
}

/** Asks a child to stop, and ends it when it has not after `graceMs`. */
export async function stopChild(child: Child, graceMs: number): Promise<Exit> {
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), graceMs);
  return child.exited.finally(() => clearTimeout(timer));
}

export async function readAll(stream: AsyncIterable<Uint8Array> | null): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of stream ?? []) chunks.push(chunk);
  return Buffer.concat(chunks);
}
