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
import { inlineBytes } from '../platform/topology.ts';

/** Bytes, the path of a file, or a stream that ends. */
export type ContentInput = Uint8Array | { readonly path: string } | AsyncIterable<Uint8Array>;

/** Content whose size and digest are known, and that can be read from any offset. */
export interface ContentSource {
  readonly size: number;
  readonly sha256: string;
  /** Exactly `length` bytes from `offset`. */
  read(offset: number, length: number): Promise<Uint8Array>;
  close(): Promise<void>;
}

export async function openContent(input: ContentInput): Promise<ContentSource> {
  if (input instanceof Uint8Array) return memorySource(input);
  if ('path' in input) return openFile(input.path);
  return openStream(input);
}

function memorySource(bytes: Uint8Array): ContentSource {
  return {
    size: bytes.length,
    sha256: createHash('sha256').update(bytes).digest('hex'),
    read: async (offset, length) => bytes.subarray(offset, offset + length),
    close: async () => undefined,
  };
}

async function openFile(path: string): Promise<ContentSource> {
  // Without O_NONBLOCK a fifo would be waited for, before anybody could see that it is one.
  const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK).catch((cause: unknown) => {
    throw new UsageError(`cannot read ${path}: ${reasonOf(cause)}`);
  });
  try {
    if (!(await handle.stat()).isFile())
      throw new UsageError(`cannot read ${path}: it is not a regular file`);
    return await fileSource(handle, path);
  } catch (error) {
    await handle.close();
    throw error;
  }
}

function reasonOf(cause: unknown): string {
  const { code, message } = cause as NodeJS.ErrnoException;
  if (code === 'ENOENT') return 'there is no such file';
  return code === 'EACCES' ? 'permission denied' : message;
}

/** Digests the file as it is now. If it changes before it is sent, the receiver's check of the digest refuses it. */
async function fileSource(handle: FileHandle, name: string): Promise<ContentSource> {
  const hash = createHash('sha256');
  const buffer = Buffer.alloc(256 * 1024);
  let size = 0;
  for (;;) {
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, size);
    if (bytesRead === 0) break;
    hash.update(buffer.subarray(0, bytesRead));
    size += bytesRead;
  }
  return {
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
async function openStream(stream: AsyncIterable<Uint8Array>): Promise<ContentSource> {
  const held: Uint8Array[] = [];
  let size = 0;
  let spool: FileHandle | null = null;
  try {
    for await (const chunk of stream) {
      size += chunk.length;
      if (spool === null) held.push(chunk);
      else await spool.appendFile(chunk);
      if (spool === null && size > inlineBytes) {
        spool = await openUnnamed();
        await spool.appendFile(Buffer.concat(held.splice(0)));
      }
    }
    return spool === null ? memorySource(Buffer.concat(held)) : await fileSource(spool, 'the spooled stream');
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

/** The name that a file has unless the caller gives it another. */
export function nameOf(input: {
  readonly name?: string | undefined;
  readonly path?: string | undefined;
}): string {
  const name = input.name ?? (input.path === undefined ? undefined : basename(input.path));
  if (name === undefined || name === '') throw new UsageError('bytes without a name: give them a file name');
  return name;
}
