/** Reading and writing files of the person at the keyboard: each fault names the file and what to do. */
import { constants } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { access, lstat, mkdir, open, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { OperationalError, UsageError } from '../platform/errors.ts';
import { reasonOf } from '../platform/file-reasons.ts';
import type { ProcessLock } from '../platform/process-lock.ts';
import { holdLock } from '../platform/process-lock.ts';

/** Keys, envelopes, stores and policies have a few KiB; whatever is larger than this is another kind of file. */
const mostBytes = 16 * 1024 * 1024;

/** A small file as a whole. It may be a pipe, as in `--key <(decrypt key)`, but not one that never ends. */
export async function readBytes(path: string, what: string): Promise<Uint8Array> {
  return await readWhole(path).catch((cause: unknown) => {
    throw new UsageError(`cannot read ${what} ${path}: ${reasonOf(cause)}`);
  });
}

/** The file's bytes, or null when there is none. */
export async function readIfThere(path: string, what: string): Promise<Uint8Array | null> {
  return await readWhole(path).catch((cause: unknown) => {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw new UsageError(`cannot read ${what} ${path}: ${reasonOf(cause)}`);
  });
}

async function readWhole(path: string): Promise<Uint8Array> {
  const handle = await open(path, 'r');
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of handle.createReadStream()) {
    chunks.push(chunk as Buffer);
    size += chunks.at(-1)?.length ?? 0;
    if (size > mostBytes) throw new Error(`it has more than ${mostBytes} bytes, so it is something else`);
  }
  return Buffer.concat(chunks);
}

/** The bytes of a regular file of any size, piece by piece. Devices and pipes, which may have no end, are refused. */
export async function* streamBytes(path: string, what: string): AsyncGenerator<Buffer, void> {
  try {
    // Without O_NONBLOCK a fifo would be waited for, before anybody could see that it is one.
    const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const stats = await handle.stat();
    if (!stats.isFile() && !stats.isDirectory()) {
      await handle.close();
      throw new Error('it is not a regular file');
    }
    for await (const chunk of handle.createReadStream({ highWaterMark: 256 * 1024 })) yield chunk as Buffer;
  } catch (cause) {
    throw new UsageError(`cannot read ${what} ${path}: ${reasonOf(cause)}`);
  }
}

/** For work that is long or done elsewhere before the file is written: what would refuse it then refuses it now. */
export async function mustBeNew(path: string): Promise<void> {
  if (await lstat(path).catch(() => null))
    throw new UsageError(`cannot write ${path}: ${reasonOf({ code: 'EEXIST' })}`);
}

/** What a file is to have; what comes piece by piece may fail, and then the file is not made. */
type Bytes = Uint8Array | string | AsyncIterable<Uint8Array>;

/** Writes a file that must not exist yet. */
export async function writeNew(path: string, bytes: Bytes, mode: number): Promise<void> {
  const failed = (cause: unknown) => new UsageError(`cannot write ${path}: ${reasonOf(cause)}`);
  const handle = await open(path, 'wx', mode).catch((cause: unknown) => {
    throw failed(cause);
  });
  try {
    await writeAndClose(handle, bytes);
  } catch (cause) {
    // Half a key would be in the way the next time.
    await rm(path, { force: true });
    throw cause instanceof OperationalError ? cause : failed(cause);
  }
}

/** Makes an empty file where there is none. */
async function appendNothing(path: string): Promise<void> {
  try {
    await (await open(path, 'a', 0o600)).close();
  } catch (cause) {
    throw new UsageError(`cannot write ${path}: ${reasonOf(cause)}`);
  }
}

/** The lock of this file, which is made where there is none; null while another process holds it. */
export async function tryLock(file: string): Promise<ProcessLock | null> {
  // What SQLite says of a file that it cannot make is not why. One that is there is not opened and closed: that would
  // take this process's own lock on it (fcntl(2)).
  await access(file, constants.W_OK).catch(() => appendNothing(file));
  return holdLock(file);
}

/** With those above it, for the owner alone. */
export async function makeFolder(path: string): Promise<void> {
  try {
    await mkdir(path, { recursive: true, mode: 0o700 });
  } catch (cause) {
    throw new UsageError(`cannot make ${path}: ${reasonOf(cause)}`);
  }
}

/** Writes beside the file and renames, so that nobody ever reads half of it. */
export async function writeAtomically(path: string, bytes: Uint8Array | string, mode: number): Promise<void> {
  const unfinished = `${path}.${process.pid}.new`;
  try {
    await writeNew(unfinished, bytes, mode);
    await rename(unfinished, path);
    await syncFolder(dirname(path));
  } catch (cause) {
    await rm(unfinished, { force: true });
    if (cause instanceof UsageError) throw cause;
    throw new UsageError(`cannot write ${path}: ${reasonOf(cause)}`);
  }
}

/** A change takes milliseconds: whoever waits longer waits for a process that stands still. */
const lockPatienceMs = 10_000;
const lockRetryMs = 50;

/**
 * Runs `work` while nobody else who asks for the same lock does, and waits for whoever has it. The lock is a hidden file
 * beside this one, which stays there, empty; a process that dies has let go of it.
 */
export async function withLock<T>(
  path: string,
  work: () => Promise<T>,
  patienceMs = lockPatienceMs,
): Promise<T> {
  const lock = await waitForLock(path, patienceMs);
  try {
    return await work();
  } finally {
    lock.close();
  }
}

async function waitForLock(path: string, patienceMs: number): Promise<ProcessLock> {
  const file = join(dirname(path), `.${basename(path)}.lock`);
  const endMs = performance.now() + patienceMs;
  for (;;) {
    const lock = await tryLock(file);
    if (lock !== null) return lock;
    if (performance.now() >= endMs)
      throw new UsageError(
        `${path} is being changed by another process, for more than ${patienceMs / 1000} s; try again when that has ended`,
      );
    await delay(lockRetryMs);
  }
}

async function writeAndClose(handle: FileHandle, bytes: Bytes): Promise<void> {
  try {
    await handle.writeFile(bytes);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function syncFolder(path: string): Promise<void> {
  const handle = await open(path, 'r');
  await handle.sync().finally(() => handle.close());
}
