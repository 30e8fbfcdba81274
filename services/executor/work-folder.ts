/**
 * Where an executor keeps the files of its running jobs: one directory for each executor, one in it for each attempt.
 * What a dead executor of this host left is removed at the next start; cgroups and mounts are the launcher's business.
 */
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { UsageError } from '../platform/errors.ts';
import type { JobRef } from '../platform/topology.ts';
import { kvKey } from '../platform/topology.ts';

const ownerShape = z.object({ hostname: z.string(), pid: z.number().int(), startTicks: z.string() });
type Owner = z.infer<typeof ownerShape>;

export class WorkFolder {
  readonly #own: string;

  private constructor(own: string) {
    this.#own = own;
  }

  /** Takes a directory below `root` for this process, after it has removed those of dead ones. */
  static async open(root: string, executor: string, hostname: string): Promise<WorkFolder> {
    await mkdir(root, { recursive: true, mode: 0o700 });
    for (const name of await readdir(root))
      if (await isLeftOver(join(root, name), hostname))
        await rm(join(root, name), { recursive: true, force: true });
    const own = join(root, executor);
    await takeOwn(own, executor);
    const owner: Owner = {
      hostname,
      pid: process.pid,
      startTicks: (await startTicksOf(process.pid)) ?? '',
    };
    await writeFile(join(own, 'owner.json'), JSON.stringify(owner), { mode: 0o600 });
    return new WorkFolder(own);
  }

  /**
   * A directory that no other try shares, with `out` and `inputs` in it. A job that was claimed and never started comes
   * again under the same number, perhaps while the first try still cleans up after itself.
   */
  async forAttempt(job: JobRef, attempt: number): Promise<AttemptFolder> {
    const path = await mkdtemp(join(this.#own, `${kvKey(job)}.${attempt}.`));
    await mkdir(join(path, 'out'), { mode: 0o700 });
    await mkdir(join(path, 'inputs'), { mode: 0o700 });
    return {
      path,
      out: join(path, 'out'),
      plugin: join(path, 'plugin'),
      stdin: join(path, 'stdin'),
      input: (index) => join(path, 'inputs', String(index)),
      remove: () => rm(path, { recursive: true, force: true }),
    };
  }

  async close(): Promise<void> {
    await rm(this.#own, { recursive: true, force: true });
  }
}

export interface AttemptFolder {
  readonly path: string;
  /** Files that the plugin left in /job/out. */
  readonly out: string;
  readonly plugin: string;
  readonly stdin: string;
  readonly input: (index: number) => string;
  remove(): Promise<void>;
}

/** Two executors of one name would each think that the other's jobs are its own. */
async function takeOwn(path: string, executor: string): Promise<void> {
  try {
    await mkdir(path, { mode: 0o700 });
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'EEXIST') throw cause;
    const owner = await readOwner(path);
    throw new UsageError(
      `an executor with the name ${executor} runs already (process ${owner?.pid} on ${owner?.hostname}; ${path}): give this one another SANDBUS_EXECUTOR_ID, or another SANDBUS_STATE_DIR`,
    );
  }
}

/** Whether nobody uses a directory any more. One of another host, on a shared disk, is left alone. */
async function isLeftOver(path: string, hostname: string): Promise<boolean> {
  const owner = await readOwner(path);
  if (owner === null) return true;
  if (owner.hostname !== hostname) return false;
  // A process id comes back; together with its start time it does not.
  return (await startTicksOf(owner.pid)) !== owner.startTicks;
}

async function readOwner(path: string): Promise<Owner | null> {
  const text = await readFile(join(path, 'owner.json'), 'utf8').catch(() => null);
  if (text === null) return null;
  try {
    return ownerShape.parse(JSON.parse(text));
  } catch {
    return null;
  }
}

/** When a process started, in clock ticks since boot; null when there is none. Field 22 of proc(5) stat. */
async function startTicksOf(pid: number): Promise<string | null> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => null);
  if (text === null) return null;
  // The program's name comes second, in parentheses, and may hold anything, spaces too.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return fields[19] ?? null;
}
