/**
 * Writes an object as the NATS object store lays it out (NATS ADR-20): chunks on `$O.<bucket>.C.<nuid>`, then the
 * object's description on `$O.<bucket>.M.<name in base64url>`, which makes it visible. By hand, since the library
 * leaves publishes behind that nobody waits for: one that is refused, as by a full store, would end the whole process.
 */
import { createHash } from 'node:crypto';
import type { JetStreamClient, JetStreamManager } from 'nats';
import { headers, JsHeaders, nuid } from 'nats';

export interface ObjectTarget {
  readonly client: JetStreamClient;
  readonly manager: JetStreamManager;
  readonly bucket: string;
}

type Content = Iterable<Uint8Array> | AsyncIterable<Uint8Array>;

const objectChunkBytes = 128 * 1024;

/** Stores `content` under `name`. What was written of it is removed again when that fails. */
export async function writeObject(
  target: ObjectTarget,
  name: string,
  content: Content,
  metadata: Readonly<Record<string, string>>,
): Promise<void> {
  const id = nuid.next();
  const chunkSubject = `$O.${target.bucket}.C.${id}`;
  try {
    const written = await writeChunks(target.client, chunkSubject, content);
    const description = { name, metadata, bucket: target.bucket, nuid: id, ...written, deleted: false };
    await describe(target, description);
  } catch (error) {
    const undone = target.manager.streams.purge(`OBJ_${target.bucket}`, { filter: chunkSubject });
    await undone.catch(() => undefined);
    throw error;
  }
}

interface Written {
  readonly size: number;
  readonly chunks: number;
  readonly digest: string;
}

async function writeChunks(client: JetStreamClient, subject: string, content: Content): Promise<Written> {
  const hash = createHash('sha256');
  let size = 0;
  let chunks = 0;
  for await (const chunk of inChunks(content)) {
    await client.publish(subject, chunk);
    hash.update(chunk);
    size += chunk.length;
    chunks += 1;
  }
  return { size, chunks, digest: `SHA-256=${base64Url(hash.digest())}` };
}

async function* inChunks(content: Content): AsyncIterable<Uint8Array> {
  for await (const bytes of content)
    for (let offset = 0; offset < bytes.length; offset += objectChunkBytes)
      yield bytes.subarray(offset, offset + objectChunkBytes);
}

async function describe(
  target: ObjectTarget,
  description: Written & { readonly name: string },
): Promise<void> {
  const mtime = new Date().toISOString();
  const body = { ...description, mtime, options: { max_chunk_size: objectChunkBytes } };
  const replacing = headers();
  replacing.set(JsHeaders.RollupHdr, JsHeaders.RollupValueSubject);
  const subject = `$O.${target.bucket}.M.${base64Url(Buffer.from(description.name))}`;
  await target.client.publish(subject, JSON.stringify(body), { headers: replacing });
}

/** Base64url with its padding, as the object store has it (Node's `base64url` has none). */
function base64Url(bytes: Buffer): string {
  return bytes.toString('base64').replaceAll('+', '-').replaceAll('/', '_');
}
