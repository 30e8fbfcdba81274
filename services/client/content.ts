/**
 * Bytes that a job brings with it: a plugin, an input, standard input. They come from memory, from a file or from a
 * stream, and are read piece by piece, so that a large one never lies in memory as a whole.
 */
import { createHash, randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { UsageError } from '../platform/errors.ts';
import { reasonOf } from '../platform/file-reasons.ts';
import { inlineBytes, mostUploadBytes } from '../platform/topology.ts';

/** Bytes, the path of a file, or a stream that ends. */
export type ContentInput = Uint8Array | { readonly path: string } | AsyncIterable<Uint8Array>;

/** Content whose size and digest are known, and that can be read from any offset. */
export interface ContentSource {
  /** What a person calls it. */
  readonly name: string;
  readonly size: number;
  readonly sha256: string;
  /** Exactly `length` bytes from `offset`. */
  read(offset: number, length: number): Promise<Uint8Array>;
  close(): Promise<void>;
}

/**
 * Opens content of at most `mostBytes`; what is larger is refused, before it is read where its size is known. Errors say
 * its path, or `name` where it has none. Throws UsageError.
 */
export async function openContent(
  input: ContentInput,
  name = 'the content',
  mostBytes = mostUploadBytes,
): Promise<ContentSource> {
  const bounds = { name: 'path' in input ? input.path : name, mostBytes };
  if (input instanceof Uint8Array) return memorySource(input, bounds);
  try {
    return 'path' in input ? await openFile(input.path, bounds) : await openStream(input, bounds);
  } catch (error) {
    throw isOfSystem(error) ? new UsageError(`cannot read ${bounds.name}: ${reasonOf(error)}`) : error;
  }
}

interface Bounds {
  readonly name: string;
  readonly mostBytes: number;
}

function checkSize(size: number, { name, mostBytes }: Bounds): void {
  if (size > mostBytes)
    throw new UsageError(
      `${name} is too large: a file or a standard input may have ${mostBytes} bytes (${formatMiB(mostBytes)})`,
    );
}

const formatMiB = (bytes: number): string => `${bytes / 1024 ** 2} MiB`;

function memorySource(bytes: Uint8Array, bounds: Bounds): ContentSource {
  checkSize(bytes.length, bounds);
  return {
    name: bounds.name,
    size: bytes.length,
    sha256: createHash('sha256').update(bytes).digest('hex'),
    read: async (offset, length) => bytes.subarray(offset, offset + length),
    close: async () => undefined,
  };
}

async function openFile(path: string, bounds: Bounds): Promise<ContentSource> {
  // Without O_NONBLOCK a fifo would be waited for, before anybody could see that it is one.
  const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const facts = await handle.stat();
    if (!facts.isFile()) throw new UsageError(`cannot read ${path}: it is not a regular file`);
    checkSize(facts.size, bounds);
    return await fileSource(handle, bounds);
  } catch (error) {
    await handle.close();
    throw error;
  }
}

const isOfSystem = (error: unknown): boolean => error instanceof Error && 'syscall' in error;

/** Digests the file as it is now. If it changes before it is sent, the receiver's check of the digest refuses it. */
async function fileSource(handle: FileHandle, bounds: Bounds): Promise<ContentSource> {
  const { name } = bounds;
  const hash = createHash('sha256');
  const buffer = Buffer.alloc(256 * 1024);
  let size = 0;
  for (;;) {
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, size);
    if (bytesRead === 0) break;
    hash.update(buffer.subarray(0, bytesRead));
    size += bytesRead;
    checkSize(size, bounds);
  }
  return {
    name,
    size,
    sha256: hash.digest('hex'),
    read: (offset, length) => readExactly(handle, name, offset, length),
    close: () => handle.close(),
  };
}

async function readExactly(
  handle: FileHandle,
  name: string,
  offset: number,
  length: number,
): Promise<Uint8Array> {
  const buffer = Buffer.alloc(length);
  let filled = 0;
  while (filled < length) {
    const { bytesRead } = await handle.read(buffer, filled, length - filled, offset + filled);
    if (bytesRead === 0) throw new UsageError(`${name} became shorter while it was being sent`);
    filled += bytesRead;
  }
  return buffer;
}

/** Small streams stay in memory; a longer one goes to a file without a name, which no crash can leave behind. */
async function openStream(stream: AsyncIterable<Uint8Array>, bounds: Bounds): Promise<ContentSource> {
  const held: Uint8Array[] = [];
  let size = 0;
  let spool: FileHandle | null = null;
  try {
    for await (const chunk of stream) {
      size += chunk.length;
      checkSize(size, bounds);
      if (spool === null) held.push(chunk);
      else await kept(spool.appendFile(chunk), bounds);
      if (spool === null && size > inlineBytes) {
        spool = await kept(openUnnamed(), bounds);
        await kept(spool.appendFile(Buffer.concat(held.splice(0))), bounds);
      }
    }
    return spool === null ? memorySource(Buffer.concat(held), bounds) : await fileSource(spool, bounds);
  } catch (error) {
    await spool?.close();
    throw error;
  }
}

async function openUnnamed(): Promise<FileHandle> {
  const path = join(tmpdir(), `sandbus-stream-${randomUUID()}`);
  const handle = await open(path, 'wx+', 0o600);
  await rm(path);
  return handle;
}

/** A step with the file that keeps a stream. */
async function kept<T>(step: Promise<T>, { name }: Bounds): Promise<T> {
  try {
    return await step;
  } catch (cause) {
    const where = `${tmpdir()} until it has been sent`;
    throw new UsageError(
      `cannot keep ${name} in ${where}: ${reasonOf(cause)}. TMPDIR names another folder for it`,
    );
  }
}

/** The name that a file has unless the caller gives it another. */
export function nameOf(input: {
  readonly name?: string | undefined;
  readonly path?: string | undefined;
}): string {
  const name = input.name ?? (input.path === undefined ? undefined : basename(input.path));
  if (name === undefined || name === '') throw new UsageError('bytes without a name: give them a file name');
  return name;
}
