/** The interpreters of this host: where they are, which version, and what the sandbox must show of the host for them. */
import { access, constants, realpath, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import type { Runtime } from '../../schemas/generated/events.ts';
import { messageOf } from '../platform/errors.ts';
import { runChild } from '../platform/process.ts';

export type Interpreted = Exclude<Runtime, 'native'>;

export interface Interpreter {
  readonly runtime: Interpreted;
  /** Absolute and real: no link is followed inside the sandbox. */
  readonly path: string;
  readonly version: string;
  /** A file or directory to show at its own path; null where /usr, which every job sees, is enough. */
  readonly bind: string | null;
}

export type Found =
  | { readonly ok: true; readonly interpreter: Interpreter }
  | { readonly ok: false; readonly runtime: Interpreted; readonly fault: string };

const usualPlaces: Readonly<Record<Exclude<Interpreted, 'node'>, readonly string[]>> = {
  python: ['/usr/bin/python3', '/usr/local/bin/python3'],
  ruby: ['/usr/bin/ruby', '/usr/local/bin/ruby'],
  bash: ['/usr/bin/bash', '/bin/bash', '/usr/local/bin/bash'],
};

/** Looks for each interpreter. `chosen` are the operator's own paths, null for those left open. */
export function findInterpreters(chosen: Readonly<Record<Interpreted, string | null>>): Promise<Found[]> {
  const places = (runtime: Interpreted): readonly string[] => {
    const own = chosen[runtime];
    if (own !== null) return [own];
    // Node runs this very program, so it is the one to give to plugins.
    return runtime === 'node' ? [process.execPath] : usualPlaces[runtime];
  };
  return Promise.all((Object.keys(chosen) as Interpreted[]).map((runtime) => find(runtime, places(runtime))));
}

async function find(runtime: Interpreted, places: readonly string[]): Promise<Found> {
  const faults: string[] = [];
  for (const place of places) {
    try {
      return { ok: true, interpreter: await inspect(runtime, place) };
    } catch (error) {
      faults.push(messageOf(error));
    }
  }
  return { ok: false, runtime, fault: faults.join('; ') };
}

async function inspect(runtime: Interpreted, place: string): Promise<Interpreter> {
  const path = await realpath(place);
  await access(path, constants.X_OK);
  return { runtime, path, version: await versionOf(path), bind: await bindFor(path) };
}

async function versionOf(path: string): Promise<string> {
  const { stdout, stderr, code } = await runChild(path, ['--version'], { LANG: 'C.UTF-8' });
  const [line] = `${stdout}${stderr}`.split('\n');
  if (code !== 0 || line === undefined || line === '') throw new Error(`${path} --version does not work`);
  return line.slice(0, 200);
}

const visibleAnyway = ['/usr/', '/bin/', '/sbin/', '/lib/', '/lib32/', '/lib64/', '/libx32/'];

/**
 * The prefix of an interpreter outside /usr (`/opt/python` of `/opt/python/bin/python3`) with its library; only the file
 * itself where the directory above is no prefix of an installation, least of all somebody's home.
 */
async function bindFor(path: string): Promise<string | null> {
  if (visibleAnyway.some((prefix) => path.startsWith(prefix))) return null;
  const prefix = dirname(dirname(path));
  const isPrefix =
    basename(dirname(path)) === 'bin' && !(await isShared(prefix)) && (await hasLibrary(prefix));
  return isPrefix ? prefix : path;
}

async function isShared(prefix: string): Promise<boolean> {
  const home = await realpath(homedir()).catch(() => homedir());
  const isAbove = home === prefix || home.startsWith(`${prefix === '/' ? '' : prefix}/`);
  return isAbove || prefix === '/' || dirname(prefix) === '/' || dirname(prefix) === '/home';
}

async function hasLibrary(prefix: string): Promise<boolean> {
  return (await stat(join(prefix, 'lib')).catch(() => null))?.isDirectory() ?? false;
}
