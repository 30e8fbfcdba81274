/**
 * The description of an object as the NATS object store lays it out (NATS ADR-20): chunks on `$O.<bucket>.C.<nuid>`, then
 * one message on `$O.<bucket>.M.<name in base64url>`, which makes them an object. What we add stands in its metadata.
 */
import { z } from 'zod';

const shape = z.object({
  name: z.string(),
  nuid: z.string(),
  size: z.number(),
  deleted: z.boolean().optional(),
  metadata: z.record(z.string(), z.string()).optional(),
  mtime: z.string().optional(),
});

/** Milliseconds since 1970 until which nobody may collect the object. */
const keepUntilName = 'keep-until-ms';

export interface Description {
  readonly name: string;
  /** Names the chunks. */
  readonly id: string;
  readonly size: number;
  readonly metadata: Readonly<Record<string, string>>;
  readonly keepUntilMs: number;
}

export const chunkSubject = (bucket: string, id: string): string => `$O.${bucket}.C.${id}`;
export const nameSubject = (bucket: string, name: string): string =>
  `$O.${bucket}.M.${base64Url(Buffer.from(name))}`;

/** Null for one of an object that was deleted, and for what is no description. */
export function parseDescription(bytes: Uint8Array): Description | null {
  try {
    const {
      name,
      nuid,
      size,
      deleted,
      metadata = {},
    } = shape.parse(JSON.parse(Buffer.from(bytes).toString('utf8')));
    if (deleted === true) return null;
    return { name, id: nuid, size, metadata, keepUntilMs: Number(metadata[keepUntilName] ?? 0) };
  } catch {
    return null;
  }
}

export interface Described {
  readonly bucket: string;
  readonly name: string;
  readonly id: string;
  readonly size: number;
  readonly chunks: number;
  readonly maxChunkBytes: number;
  readonly sha256: Uint8Array;
  readonly metadata: Readonly<Record<string, string>>;
  readonly keepUntilMs: number;
}

export function descriptionBytes(of: Described): Uint8Array {
  const { id: nuid, maxChunkBytes, sha256, keepUntilMs, ...rest } = of;
  return Buffer.from(
    JSON.stringify({
      ...{ ...rest, nuid, deleted: false, mtime: new Date().toISOString() },
      digest: `SHA-256=${base64Url(sha256)}`,
      metadata: { ...of.metadata, [keepUntilName]: String(keepUntilMs) },
      options: { max_chunk_size: maxChunkBytes },
    }),
  );
}

/** The same description with another time; everything else stays as whoever wrote it had it. */
export function keptUntil(bytes: Uint8Array, keepUntilMs: number): Uint8Array {
  const known = JSON.parse(Buffer.from(bytes).toString('utf8')) as { metadata?: object };
  const metadata = { ...known.metadata, [keepUntilName]: String(keepUntilMs) };
  return Buffer.from(JSON.stringify({ ...known, metadata }));
}

/** Base64url with its padding, as the object store has it (Node's `base64url` has none). */
function base64Url(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64').replaceAll('+', '-').replaceAll('/', '_');
}
