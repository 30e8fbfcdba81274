/**
 * Uploads by request and reply: `upload.<tenant>.<sha256>`, in chunks, resumable, digest-checked. Any verifier may
 * answer any chunk: how far an upload has come is in KV, its parts are objects, nothing is in this process.
 */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { messageOf, OperationalError } from '../platform/errors.ts';
import type { Logger } from '../platform/log.ts';
import type { Reply, Request } from '../platform/nats/bus.ts';
import type { KvBucket } from '../platform/nats/kv.ts';
import type { ObjectBucket } from '../platform/nats/objects.ts';
import { chunkBytes, headerNames, isSha256, isTenant } from '../platform/topology.ts';
import { objectMetadata, sha256Hex } from './plugins.ts';

export interface UploadParts {
  readonly plugins: ObjectBucket;
  readonly uploads: KvBucket;
  readonly log: Logger;
  /** Largest upload, bytes. */
  readonly maxBytes: number;
  /** Why a tenant may not begin an upload of this size; null when it may. */
  readonly refuse: (tenant: string, size: number) => string | null;
}

/** A request that is refused; the code stands in the reply's Sandbus-Error header. */
class UploadRefused extends Error {
  readonly code: string;
  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

const progressShape = z.object({
  size: z.number(),
  /** When the last part came. */
  touchedAtMs: z.number().default(0),
  parts: z.array(z.object({ sha256: z.string(), length: z.number() })),
});
type Progress = z.infer<typeof progressShape>;

interface Chunk {
  readonly tenant: string;
  readonly sha256: string;
  readonly size: number;
  readonly offset: number;
  readonly bytes: Uint8Array;
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
  if (!isTenant(tenant) || !isSha256(sha256))
    throw new UploadRefused(
      'MALFORMED',
      'the subject must be upload.<tenant>.<64 hex digits of the SHA-256>',
    );
  const size = wholeHeader(request, headerNames.size);
  const offset = wholeHeader(request, headerNames.offset);
  if (size > maxBytes) throw new UploadRefused('PLUGIN_TOO_LARGE', `${size} bytes, at most ${maxBytes}`);
  if (request.data.length > chunkBytes)
    throw new UploadRefused('MALFORMED', `a chunk of ${request.data.length} bytes, at most ${chunkBytes}`);
  if (offset + request.data.length > size)
    throw new UploadRefused(
      'MALFORMED',
      `offset ${offset} and ${request.data.length} bytes exceed the size ${size}`,
    );
  return { tenant, sha256, size, offset, bytes: request.data };
}

function wholeHeader(request: Request, name: string): number {
  const text = request.headers[name] ?? '';
  if (!/^\d{1,15}$/.test(text)) throw new UploadRefused('MALFORMED', `header ${name} must be a whole number`);
  return Number(text);
}

async function takeChunk(parts: UploadParts, chunk: Chunk): Promise<{ offset: number; complete: boolean }> {
  const done = { offset: chunk.size, complete: true };
  if ((await parts.plugins.info(chunk.sha256)) !== null) return done;
  const key = `${chunk.tenant}.${chunk.sha256}`;
  const stored = await parts.uploads.get(key);
  const progress = stored === null ? newUpload(parts, chunk) : readProgress(stored.value);
  if (progress.size !== chunk.size)
    throw new UploadRefused('MALFORMED', `this upload began with size ${progress.size}, not ${chunk.size}`);
  const have = offsetOf(progress);
  const isNext = chunk.offset === have && (chunk.bytes.length > 0 || chunk.size === 0);
  if (!isNext) return { offset: have, complete: false };

  const grown = await addPart(parts, chunk, progress);
  if (offsetOf(grown) === chunk.size) {
    await assemble(parts, chunk, grown);
    return done;
  }
  const saved = Buffer.from(JSON.stringify(grown));
  const won =
    stored === null
      ? await parts.uploads.create(key, saved)
      : await parts.uploads.update(key, saved, stored.revision);
  // Another request was first with the same chunk: the sender goes on from where that one left it.
  return won === null ? { offset: have, complete: false } : { offset: offsetOf(grown), complete: false };
}

function newUpload({ refuse }: UploadParts, { tenant, size, bytes }: Chunk): Progress {
  // What comes whole in one chunk is never open.
  const refusal = bytes.length === size ? null : refuse(tenant, size);
  if (refusal !== null) throw new UploadRefused('QUOTA_EXCEEDED', refusal);
  return { size, touchedAtMs: Date.now(), parts: [] };
}

async function addPart(parts: UploadParts, chunk: Chunk, progress: Progress): Promise<Progress> {
  if (chunk.bytes.length === 0) return progress;
  const sha256 = sha256Hex(chunk.bytes);
  await parts.plugins.put(partKey(chunk, progress.parts.length, sha256), [chunk.bytes]);
  return {
    size: progress.size,
    touchedAtMs: Date.now(),
    parts: [...progress.parts, { sha256, length: chunk.bytes.length }],
  };
}

/** Joins the parts into one object if they are what was promised; a wrong upload is forgotten whole. */
async function assemble(parts: UploadParts, chunk: Chunk, progress: Progress): Promise<void> {
  const hash = createHash('sha256');
  let head: Uint8Array = new Uint8Array();
  for await (const bytes of partBytes(parts, chunk, progress)) {
    if (head.length === 0) head = bytes;
    hash.update(bytes);
  }
  const actual = hash.digest('hex');
  if (actual === chunk.sha256)
    await parts.plugins.put(chunk.sha256, partBytes(parts, chunk, progress), objectMetadata(head));
  await forget(parts, chunk, progress);
  if (actual !== chunk.sha256)
    throw new UploadRefused(
      'DIGEST_MISMATCH',
      `the bytes have SHA-256 ${actual}, not ${chunk.sha256}; begin again`,
    );
}

async function* partBytes(parts: UploadParts, chunk: Chunk, progress: Progress): AsyncIterable<Uint8Array> {
  for (const [index, part] of progress.parts.entries()) {
    const chunks: Uint8Array[] = [];
    const key = partKey(chunk, index, part.sha256);
    const there = await parts.plugins.read(key, part.sha256, (bytes) => void chunks.push(bytes));
    if (!there) {
      await forget(parts, chunk, progress);
      throw new OperationalError('UPLOAD_LOST', `part ${index} of the upload is gone; begin again`);
    }
    yield Buffer.concat(chunks);
  }
}

/** Forgets an upload that nobody goes on with, and its parts. `key` is that of its progress. */
export async function forgetUpload(parts: UploadParts, key: string): Promise<void> {
  const [tenant = '', sha256 = ''] = key.split('.');
  const stored = await parts.uploads.get(key);
  const progress = stored === null ? null : parseProgress(stored.value);
  if (progress !== null) await forget(parts, { tenant, sha256 }, progress);
}

type UploadName = Pick<Chunk, 'tenant' | 'sha256'>;

async function forget(parts: UploadParts, chunk: UploadName, progress: Progress): Promise<void> {
  await parts.uploads.remove(`${chunk.tenant}.${chunk.sha256}`);
  for (const [index, part] of progress.parts.entries())
    await parts.plugins.delete(partKey(chunk, index, part.sha256));
}

const partKey = (chunk: UploadName, index: number, sha256: string): string =>
  `part.${chunk.tenant}.${chunk.sha256}.${index}.${sha256}`;

const offsetOf = (progress: Progress): number => progress.parts.reduce((sum, part) => sum + part.length, 0);

/** Null for what is none. */
export function parseProgress(bytes: Uint8Array): Progress | null {
  try {
    return progressShape.parse(JSON.parse(Buffer.from(bytes).toString('utf8')));
  } catch {
    return null;
  }
}

function readProgress(bytes: Uint8Array): Progress {
  const progress = parseProgress(bytes);
  if (progress === null)
    throw new OperationalError('UPLOAD_LOST', 'how far the upload has come cannot be read');
  return progress;
}
