/** How far an upload has come, as it stands in KV; and the digest of what has come, as far as this process has seen it. */
import type { Hash } from 'node:crypto';
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { contentHeadBytes } from '../platform/detect-runtime.ts';
import { OperationalError } from '../platform/errors.ts';

const shape = z.object({
  /** Announced, bytes. */
  size: z.number(),
  /** When the last chunk came. */
  touchedAtMs: z.number(),
  /** Names the object that grows. */
  id: z.string(),
  offset: z.number(),
  chunks: z.number(),
  /** Sequence of the last chunk in the store; 0 before the first. */
  last: z.number(),
});

export type Progress = Readonly<z.infer<typeof shape>>;

/** Null for what is none. */
export function parseProgress(bytes: Uint8Array): Progress | null {
  try {
    return shape.parse(JSON.parse(Buffer.from(bytes).toString('utf8')));
  } catch {
    return null;
  }
}

/** Throws OperationalError UPLOAD_LOST. */
export function readProgress(bytes: Uint8Array): Progress {
  const progress = parseProgress(bytes);
  if (progress === null)
    throw new OperationalError('UPLOAD_LOST', 'how far the upload has come cannot be read: begin again');
  return progress;
}

export const progressBytes = (progress: Progress): Uint8Array => Buffer.from(JSON.stringify(progress));

/** What is remembered of so many uploads; the others are read once more when they are complete. */
const mostRemembered = 256;

/** A digest that is not complete, and the first bytes. */
interface Seen {
  offset: number;
  readonly hash: Hash;
  head: Uint8Array;
}

export interface Content {
  readonly sha256: Uint8Array;
  readonly head: Uint8Array;
}

/**
 * Digests of uploads while they come. Where all chunks came to this process there is no need to read them again; a
 * verifier that joins later, or was started again, reads them.
 */
export class SeenContent {
  readonly #seen = new Map<string, Seen>();

  add(id: string, offset: number, bytes: Uint8Array): void {
    const seen = offset === 0 ? { offset: 0, hash: createHash('sha256'), head: bytes } : this.#seen.get(id);
    this.#seen.delete(id);
    if (seen?.offset !== offset) return;
    seen.hash.update(bytes);
    seen.offset += bytes.length;
    if (offset === 0) seen.head = Buffer.from(bytes.subarray(0, contentHeadBytes));
    this.#seen.set(id, seen);
    for (const oldest of this.#seen.keys()) {
      if (this.#seen.size <= mostRemembered) break;
      this.#seen.delete(oldest);
    }
  }

  /** Digest and first bytes of the first `size` bytes; null when not all of them came here. Forgets them. */
  take(id: string, size: number): Content | null {
    const seen = this.#seen.get(id);
    this.#seen.delete(id);
    return seen?.offset === size ? { sha256: seen.hash.digest(), head: seen.head } : null;
  }
}
