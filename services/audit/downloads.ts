/**
 * download.<tenant>.<sha256>: artifacts of the tenant's own jobs, in chunks. The object store reads only from the
 * beginning, so an object is fetched once, checked against its digest, and served from a file.
 */
import type { FileHandle } from 'node:fs/promises';
import { mkdir, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Reply, Request } from '../platform/nats/bus.ts';
import type { ObjectBucket } from '../platform/nats/objects.ts';
import { chunkBytes, headerNames, isSha256, isTenant, keepMsOf, objectKey } from '../platform/topology.ts';
import { RequestFault } from './request-fault.ts';
import { reaching } from './worker.ts';

/** Files kept for the next chunk, together. */
const longestCacheBytes = 256 * 1024 * 1024;
const keepDays = keepMsOf('artifacts') / 86_400_000;
/** Objects fetched at one time. */
const mostFetches = 8;

interface Fetched {
  readonly file: FileHandle;
  readonly size: number;
}

export class Downloads {
  readonly #folder: string;
  readonly #bucket: () => Promise<ObjectBucket>;
  /** In the order of their last use. */
  readonly #fetched = new Map<string, Promise<Fetched | null>>();
  readonly #sizes = new Map<string, number>();
  #fetches = 0;
  #files = 0;

  /** `bucket` is asked for when it is needed: the bus may have none yet. */
  constructor(folder: string, bucket: () => Promise<ObjectBucket>) {
    this.#folder = folder;
    this.#bucket = bucket;
  }

  /** Removes what a predecessor left. */
  async start(): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true });
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
  }

  /** Answers one request. Throws RequestFault. */
  async serve(request: Request): Promise<Reply> {
    const [, tenant = '', sha256 = ''] = request.subject.split('.');
    if (!isTenant(tenant) || !isSha256(sha256))
      throw new RequestFault(
        'BAD_REQUEST',
        `${request.subject} must be download.<tenant>.<SHA-256 in lower-case hex>`,
      );
    const offset = request.headers[headerNames.offset] ?? '0';
    if (!/^\d{1,15}$/.test(offset))
      throw new RequestFault('BAD_REQUEST', `header ${headerNames.offset} must be a byte offset`);
    const fetched = await this.#get(objectKey(tenant, sha256), sha256);
    if (fetched === null)
      throw new RequestFault(
        'NOT_FOUND',
        `tenant ${tenant} has no artifact ${sha256} (any more): they are kept for ${keepDays} days`,
      );
    return chunkReply(fetched, Number(offset));
  }

  #get(key: string, sha256: string): Promise<Fetched | null> {
    const known = this.#fetched.get(key) ?? this.#begin(key, sha256);
    this.#fetched.delete(key);
    this.#fetched.set(key, known);
    return known;
  }

  #begin(key: string, sha256: string): Promise<Fetched | null> {
    if (this.#fetches >= mostFetches)
      throw new RequestFault('BUSY', 'too many downloads begin at once: ask again');
    this.#fetches++;
    const fetching = reaching(`artifact ${key}`, () => this.#fetch(key, sha256)).finally(
      () => this.#fetches--,
    );
    fetching.then(
      (fetched) => (fetched === null ? this.#forget(key) : this.#keep(key, fetched.size)),
      () => this.#forget(key),
    );
    return fetching;
  }

  /** The file has no name any more when this returns: nothing of it outlives this process. */
  async #fetch(key: string, sha256: string): Promise<Fetched | null> {
    const path = join(this.#folder, String(this.#files++));
    const file = await open(path, 'wx+', 0o600);
    try {
      await rm(path);
      let size = 0;
      const found = await (await this.#bucket()).read(key, sha256, async (chunk) => {
        await file.writeFile(chunk);
        size += chunk.length;
      });
      if (found) return { file, size };
    } catch (error) {
      await file.close();
      throw error;
    }
    await file.close();
    return null;
  }

  #forget(key: string): void {
    this.#fetched.delete(key);
    this.#sizes.delete(key);
  }

  #keep(key: string, size: number): void {
    this.#sizes.set(key, size);
    let total = [...this.#sizes.values()].reduce((sum, one) => sum + one, 0);
    for (const [oldest, fetching] of this.#fetched) {
      if (total <= longestCacheBytes || oldest === key) break;
      total -= this.#sizes.get(oldest) ?? 0;
      this.#forget(oldest);
      closeLater(fetching);
    }
  }

  async stop(): Promise<void> {
    const files = [...this.#fetched.values()];
    this.#fetched.clear();
    for (const fetching of files)
      await fetching.then((fetched) => fetched?.file.close()).catch(() => undefined);
    await rm(this.#folder, { recursive: true, force: true });
  }
}

async function chunkReply({ file, size }: Fetched, offset: number): Promise<Reply> {
  if (offset > size) throw new RequestFault('BAD_REQUEST', `offset ${offset} is beyond the end, ${size}`);
  const { buffer, bytesRead } = await file.read(
    Buffer.alloc(Math.min(chunkBytes, size - offset)),
    0,
    null,
    offset,
  );
  const headers = { [headerNames.size]: String(size), [headerNames.offset]: String(offset) };
  return { data: buffer.subarray(0, bytesRead), headers };
}

/** A chunk may be on its way from it: reads that have begun end first. */
function closeLater(fetching: Promise<Fetched | null>): void {
  setTimeout(
    () => void fetching.then((fetched) => fetched?.file.close()).catch(() => undefined),
    5_000,
  ).unref();
}
