/**
 * The objects that jobs need (plugins, standard inputs, input files), fetched once by digest into a private directory.
 * Each tenant has its own: what another tenant has brought here is not there for this one.
 * A file is checked when it comes and again each time it is used, so neither the store nor the disk can change one.
 */
import { createHash, randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { link, mkdir, open, readdir, rename, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { OperationalError } from '../platform/errors.ts';
import type { ObjectBucket } from '../platform/nats/objects.ts';
import { objectKey } from '../platform/topology.ts';

/** What stands for bytes in an event. */
export interface Wanted {
  readonly tenant: string;
  readonly sha256: string;
  readonly size: number;
  readonly inline?: Uint8Array | null;
}

/** Null, or why the bytes cannot be had. */
export type Unavailable = string | null;

const defaultLimitBytes = 2 * 1024 * 1024 * 1024;

export class ContentStore {
  readonly #folder: string;
  readonly #bucket: ObjectBucket;
  readonly #limitBytes: number;
  readonly #coming = new Map<string, Promise<Unavailable>>();

  constructor(folder: string, bucket: ObjectBucket, limitBytes = defaultLimitBytes) {
    this.#folder = folder;
    this.#bucket = bucket;
    this.#limitBytes = limitBytes;
  }

  /** Makes the directory and removes fetches that a dead process left unfinished. */
  async open(): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    for (const name of await readdir(this.#folder))
      if (name.startsWith('coming-') && (await ageMs(join(this.#folder, name))) > 3_600_000)
        await rm(join(this.#folder, name), { force: true });
  }

  /** Puts the bytes at `target`, a new file. Throws OperationalError when the bus is in trouble. */
  async place(wanted: Wanted, target: string): Promise<Unavailable> {
    if (wanted.inline != null) return placeInline(wanted, wanted.inline, target);
    for (let tries = 0; tries < 3; tries++) {
      const cached = join(this.#folder, keyOf(wanted));
      if (await holds(cached, wanted)) {
        // A link of the job's own, so that the cache may forget the file at any time.
        if (await tryLink(cached, target)) return null;
        continue;
      }
      const unavailable = await this.#fetchOnce(wanted);
      if (unavailable !== null) return unavailable;
    }
    throw new OperationalError('CACHE_UNSTABLE', `${this.#folder} loses files as fast as they come`);
  }

  #fetchOnce(wanted: Wanted): Promise<Unavailable> {
    const key = keyOf(wanted);
    const known = this.#coming.get(key);
    if (known !== undefined) return known;
    const coming = this.#fetch(wanted).finally(() => this.#coming.delete(key));
    this.#coming.set(key, coming);
    return coming;
  }

  async #fetch(wanted: Wanted): Promise<Unavailable> {
    const { sha256, size } = wanted;
    const key = keyOf(wanted);
    const info = await this.#bucket.info(key);
    if (info === null) return notThere(wanted);
    if (info.size !== size) return `object ${sha256} has ${info.size} bytes, ${size} were verified`;
    await this.#makeRoom(size);
    const path = join(this.#folder, `coming-${randomUUID()}`);
    const file = await open(path, 'wx', 0o600);
    try {
      const there = await this.#bucket.read(key, sha256, async (chunk) => void (await file.writeFile(chunk)));
      if (!there) return notThere(wanted);
      await rename(path, join(this.#folder, key));
      return null;
    } catch (error) {
      const damage = await this.#damageOf(key, error);
      if (damage === null) throw error;
      return damage;
    } finally {
      await file.close();
      await rm(path, { force: true });
    }
  }

  /** Wrong bytes, or bytes that do not come although the store answers, are damage; the rest is trouble on the bus. */
  async #damageOf(key: string, error: unknown): Promise<Unavailable> {
    if (!(error instanceof OperationalError)) return null;
    if (error.code === 'OBJECT_CORRUPT') return error.message;
    if (error.code !== 'OBJECT_TIMEOUT') return null;
    return (await this.#bucket.info(key)) === null ? null : `${error.message}: chunks of it are missing`;
  }

  /** Forgets the files that were used longest ago. */
  async #makeRoom(size: number): Promise<void> {
    const files = await Promise.all(
      (await readdir(this.#folder)).map((name) => fileFacts(this.#folder, name)),
    );
    const known = files.filter((file) => file !== null).sort((a, b) => a.usedMs - b.usedMs);
    let total = known.reduce((sum, file) => sum + file.size, size);
    for (const file of known) {
      if (total <= this.#limitBytes) return;
      await rm(file.path, { force: true });
      total -= file.size;
    }
  }
}

const keyOf = ({ tenant, sha256 }: Wanted): string => objectKey(tenant, sha256);

const notThere = ({ tenant, sha256 }: Wanted): string =>
  `tenant ${tenant} has no object ${sha256} in the store (any more): upload it again`;

async function placeInline(wanted: Wanted, bytes: Uint8Array, target: string): Promise<Unavailable> {
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  if (sha256 !== wanted.sha256 || bytes.length !== wanted.size)
    return `${bytes.length} bytes with SHA-256 ${sha256} came, ${wanted.size} with ${wanted.sha256} were announced`;
  const file = await open(target, 'wx', 0o600);
  await file.writeFile(bytes).finally(() => file.close());
  return null;
}

/** Whether the file is there with the right bytes; a wrong one is removed. */
async function holds(path: string, { sha256, size }: Wanted): Promise<boolean> {
  const facts = await stat(path).catch(() => null);
  if (facts === null) return false;
  if (facts.size === size && (await digestOf(path)) === sha256) {
    const now = new Date();
    await utimes(path, now, now).catch(() => undefined);
    return true;
  }
  await rm(path, { force: true });
  return false;
}

async function digestOf(path: string): Promise<string | null> {
  const hash = createHash('sha256');
  try {
    for await (const chunk of createReadStream(path)) hash.update(chunk);
  } catch {
    return null;
  }
  return hash.digest('hex');
}

async function tryLink(from: string, to: string): Promise<boolean> {
  return link(from, to).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return false;
      throw error;
    },
  );
}

async function ageMs(path: string): Promise<number> {
  const facts = await stat(path).catch(() => null);
  return facts === null ? 0 : Date.now() - facts.mtimeMs;
}

async function fileFacts(folder: string, name: string) {
  if (name.startsWith('coming-')) return null;
  const path = join(folder, name);
  const facts = await stat(path).catch(() => null);
  return facts === null ? null : { path, size: facts.size, usedMs: facts.mtimeMs };
}
