/**
 * Uploads by request and reply: `upload.<tenant>.<sha256>`, in chunks, resumable, digest-checked. Any verifier may
 * answer any chunk: how far an upload has come is in KV, and the chunks grow in the store to what becomes the object when
 * its digest is right. Each chunk is added by compare-and-set, so that none is there twice.
 */
import { createHash } from 'node:crypto';
import { messageOf, OperationalError } from '../platform/errors.ts';
import type { Logger } from '../platform/log.ts';
import type { Reply, Request } from '../platform/nats/bus.ts';
import type { KvBucket, KvValue } from '../platform/nats/kv.ts';
import type { ObjectBucket } from '../platform/nats/objects.ts';
import { chunkBytes, headerNames, isSha256, isTenant, objectKey } from '../platform/topology.ts';
import { objectMetadata } from './plugins.ts';
import type { Content, Progress, SeenContent } from './upload-progress.ts';
import { parseProgress, progressBytes, readProgress } from './upload-progress.ts';

export interface UploadParts {
  readonly plugins: ObjectBucket;
  readonly uploads: KvBucket;
  readonly log: Logger;
  /** Largest upload, bytes. */
  readonly maxBytes: number;
  /** Why a tenant may not begin an upload of this size; null when it may. */
  readonly refuse: (tenant: string, size: number) => string | null;
  readonly seen: SeenContent;
  /** Told what has come whole. */
  readonly onStored: (key: string, size: number) => void;
}

/** A request that is refused; the code stands in the reply's Sandbus-Error header. */
class UploadRefused extends Error {
  readonly code: string;
  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

/** A chunk that is not the last has at least so many bytes: each costs the store some of its own. */
const leastChunkBytes = 4096;

interface Chunk {
  /** `<tenant>.<sha256>`: of the progress, and of the object. */
  readonly key: string;
  readonly tenant: string;
  readonly sha256: string;
  readonly size: number;
  readonly offset: number;
  readonly bytes: Uint8Array;
}

interface Answer {
  readonly offset: number;
  readonly complete: boolean;
}

/** Answers one chunk. Never throws. */
export async function answerUpload(parts: UploadParts, request: Request): Promise<Reply> {
  try {
    const progress = await takeChunk(parts, parseChunk(request, parts.maxBytes));
    return { data: Buffer.from(JSON.stringify(progress)), headers: {} };
  } catch (error) {
    const code =
      error instanceof UploadRefused || error instanceof OperationalError ? error.code : 'INTERNAL';
    if (!(error instanceof UploadRefused))
      parts.log.error({ subject: request.subject, error: messageOf(error) }, 'upload');
    return { data: Buffer.from(messageOf(error)), headers: { [headerNames.error]: code } };
  }
}

function parseChunk(request: Request, maxBytes: number): Chunk {
  const [, tenant = '', sha256 = ''] = request.subject.split('.');
  const { data: bytes } = request;
  if (!isTenant(tenant) || !isSha256(sha256))
    throw malformed('the subject must be upload.<tenant>.<64 hex digits of the SHA-256>');
  const size = wholeHeader(request, headerNames.size);
  const offset = wholeHeader(request, headerNames.offset);
  if (size > maxBytes)
    throw new UploadRefused('PLUGIN_TOO_LARGE', `${size} bytes, at most ${maxBytes} in one file`);
  if (bytes.length > chunkBytes) throw malformed(`a chunk of ${bytes.length} bytes, at most ${chunkBytes}`);
  if (offset + bytes.length > size)
    throw malformed(`offset ${offset} and ${bytes.length} bytes exceed the size ${size}`);
  if (bytes.length > 0 && bytes.length < leastChunkBytes && offset + bytes.length < size)
    throw malformed(`a chunk of ${bytes.length} bytes, at least ${leastChunkBytes} before the last`);
  return { key: objectKey(tenant, sha256), tenant, sha256, size, offset, bytes };
}

const malformed = (message: string): UploadRefused => new UploadRefused('MALFORMED', message);

function wholeHeader(request: Request, name: string): number {
  const text = request.headers[name] ?? '';
  if (!/^\d{1,15}$/.test(text)) throw malformed(`header ${name} must be a whole number`);
  return Number(text);
}

async function takeChunk(parts: UploadParts, chunk: Chunk): Promise<Answer> {
  const done = { offset: chunk.size, complete: true };
  if (await parts.plugins.keep(chunk.key)) return done;
  const stored = await parts.uploads.get(chunk.key);
  const progress = stored === null ? newUpload(parts, chunk) : readProgress(stored.value);
  if (progress.size !== chunk.size)
    throw malformed(`this upload began with size ${progress.size}, not ${chunk.size}`);
  const isNext = chunk.offset === progress.offset && (chunk.bytes.length > 0 || chunk.size === 0);
  if (!isNext) return { offset: progress.offset, complete: false };

  const grown = await grow(parts, chunk, progress, stored);
  if (grown.offset === chunk.size) {
    await complete(parts, chunk, grown);
    return done;
  }
  // Another request was first with the same chunk: the sender goes on from where that one left it.
  const won = await save(parts, chunk, grown, stored);
  return { offset: won ? grown.offset : progress.offset, complete: false };
}

function newUpload({ refuse, plugins }: UploadParts, { tenant, size, bytes }: Chunk): Progress {
  // What comes whole in one chunk is never open.
  const refusal = bytes.length === size ? null : refuse(tenant, size);
  if (refusal !== null) throw new UploadRefused('QUOTA_EXCEEDED', refusal);
  return { size, touchedAtMs: Date.now(), id: plugins.begin(), offset: 0, chunks: 0, last: 0 };
}

async function save({ uploads }: UploadParts, { key }: Chunk, progress: Progress, before: KvValue | null) {
  const bytes = progressBytes(progress);
  const revision =
    before === null ? await uploads.create(key, bytes) : await uploads.update(key, bytes, before.revision);
  return revision !== null;
}

async function grow(
  parts: UploadParts,
  chunk: Chunk,
  progress: Progress,
  stored: KvValue | null,
): Promise<Progress> {
  const { bytes, offset } = chunk;
  if (bytes.length === 0) return progress;
  const { plugins, seen } = parts;
  const last =
    (await plugins.append(progress.id, bytes, progress.last)) ??
    (await sameChunk(parts, chunk, progress, stored));
  seen.add(progress.id, offset, bytes);
  const touchedAtMs = Date.now();
  return { ...progress, touchedAtMs, offset: offset + bytes.length, chunks: progress.chunks + 1, last };
}

/**
 * There is a chunk already where this one belongs: by another request that is under way, or by a verifier that died before
 * it could note it. The same bytes are as good as ours.
 */
async function sameChunk(
  parts: UploadParts,
  { key, bytes }: Chunk,
  { id, last }: Progress,
  stored: KvValue | null,
): Promise<number> {
  const found = await parts.plugins.chunkAfter(id, last);
  if (found !== null && Buffer.compare(found.data, bytes) === 0) return found.sequence;
  const now = await parts.uploads.get(key);
  if (now?.revision === stored?.revision) await forget(parts, key, id);
  throw new OperationalError(
    'UPLOAD_LOST',
    'the chunks of this upload are not those that were noted; begin again',
  );
}

/** Makes the chunks an object if they are what was promised; a wrong upload is forgotten whole. */
async function complete(parts: UploadParts, chunk: Chunk, progress: Progress): Promise<void> {
  const { plugins, uploads, seen, onStored } = parts;
  const { id, size, chunks } = progress;
  const { sha256, head } = seen.take(id, size) ?? (await readAgain(parts, chunk, progress));
  const actual = Buffer.from(sha256).toString('hex');
  if (actual !== chunk.sha256) {
    await forget(parts, chunk.key, id);
    throw new UploadRefused(
      'DIGEST_MISMATCH',
      `the bytes have SHA-256 ${actual}, not ${chunk.sha256}; begin again`,
    );
  }
  const written = { id, size, chunks, maxChunkBytes: chunkBytes, sha256 };
  const ours = await plugins.describe(chunk.key, written, objectMetadata(head));
  onStored(chunk.key, size);
  if (ours) await uploads.remove(chunk.key);
  else await forget(parts, chunk.key, id);
}

async function readAgain({ plugins }: UploadParts, { key }: Chunk, progress: Progress): Promise<Content> {
  const hash = createHash('sha256');
  let head: Uint8Array = new Uint8Array();
  await plugins.readChunks(key, progress, (bytes) => {
    if (head.length === 0) head = bytes;
    hash.update(bytes);
  });
  return { sha256: hash.digest(), head };
}

/** Forgets an upload that nobody goes on with, and its chunks. `key` is that of its progress. */
export async function forgetUpload(parts: UploadParts, key: string): Promise<void> {
  const stored = await parts.uploads.get(key);
  const progress = stored === null ? null : parseProgress(stored.value);
  if (progress !== null) await forget(parts, key, progress.id);
}

async function forget({ uploads, plugins }: UploadParts, key: string, id: string): Promise<void> {
  await uploads.remove(key);
  // A verifier may have died between the last two steps: then these chunks are an object.
  if ((await plugins.info(key))?.id !== id) await plugins.drop(id);
}
