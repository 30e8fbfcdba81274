/**
 * Writes objects. By hand, since the library leaves publishes behind that nobody waits for (one that is refused, as by a
 * full store, would end the whole process) and cannot let an object grow over several requests. Each step is a
 * compare-and-set, so that two writers never mix their chunks, and none describes over another.
 */
import { createHash } from 'node:crypto';
import type { JetStreamClient, JetStreamManager } from 'nats';
import { headers, JsHeaders, nuid } from 'nats';
import { isConflict } from './failures.ts';
import { chunkSubject, descriptionBytes, nameSubject } from './object-description.ts';

export interface ObjectTarget {
  readonly client: JetStreamClient;
  readonly manager: JetStreamManager;
  readonly bucket: string;
}

export type Content = Iterable<Uint8Array> | AsyncIterable<Uint8Array>;

const objectChunkBytes = 128 * 1024;

export const newObjectId = (): string => nuid.next();

/** Sequence of the new chunk; null when `after` is not the last chunk of that object. 0 is before the first. */
export async function appendChunk(
  { client, bucket }: ObjectTarget,
  id: string,
  bytes: Uint8Array,
  after: number,
): Promise<number | null> {
  return unlessConflict(async () => {
    const expect = { lastSubjectSequence: after };
    return (await client.publish(chunkSubject(bucket, id), bytes, { expect })).seq;
  });
}

export interface Written {
  readonly id: string;
  readonly size: number;
  readonly chunks: number;
  readonly maxChunkBytes: number;
  readonly sha256: Uint8Array;
}

/** Makes the chunks an object; false when there is one of this name already. */
export async function describeObject(
  { client, bucket }: ObjectTarget,
  name: string,
  written: Written,
  facts: { readonly metadata: Readonly<Record<string, string>>; readonly keepUntilMs: number },
): Promise<boolean> {
  const body = descriptionBytes({ bucket, name, ...written, ...facts });
  return (await putDescription(client, nameSubject(bucket, name), body, 0)) !== null;
}

/** Replaces the description with this sequence, 0 for none; null when another stands there. */
export function putDescription(
  client: JetStreamClient,
  subject: string,
  body: Uint8Array,
  after: number,
): Promise<number | null> {
  const replacing = headers();
  replacing.set(JsHeaders.RollupHdr, JsHeaders.RollupValueSubject);
  return unlessConflict(async () => {
    const expect = { lastSubjectSequence: after };
    return (await client.publish(subject, body, { headers: replacing, expect })).seq;
  });
}

/** Stores `content` under `name`. What was written of it is removed again when that fails, or another was first. */
export async function writeObject(
  target: ObjectTarget,
  name: string,
  content: Content,
  facts: { readonly metadata: Readonly<Record<string, string>>; readonly keepUntilMs: number },
): Promise<void> {
  const id = newObjectId();
  try {
    const written = await writeChunks(target, id, content);
    if (!(await describeObject(target, name, written, facts))) await dropChunks(target, id);
  } catch (error) {
    await dropChunks(target, id).catch(() => undefined);
    throw error;
  }
}

async function writeChunks({ client, bucket }: ObjectTarget, id: string, content: Content): Promise<Written> {
  const hash = createHash('sha256');
  let size = 0;
  let chunks = 0;
  for await (const chunk of inChunks(content)) {
    await client.publish(chunkSubject(bucket, id), chunk);
    hash.update(chunk);
    size += chunk.length;
    chunks += 1;
  }
  return { id, size, chunks, maxChunkBytes: objectChunkBytes, sha256: hash.digest() };
}

async function* inChunks(content: Content): AsyncIterable<Uint8Array> {
  for await (const bytes of content)
    for (let offset = 0; offset < bytes.length; offset += objectChunkBytes)
      yield bytes.subarray(offset, offset + objectChunkBytes);
}

export async function dropChunks({ manager, bucket }: ObjectTarget, id: string): Promise<void> {
  await manager.streams.purge(`OBJ_${bucket}`, { filter: chunkSubject(bucket, id) });
}

async function unlessConflict(action: () => Promise<number>): Promise<number | null> {
  try {
    return await action();
  } catch (error) {
    if (isConflict(error)) return null;
    throw error;
  }
}
