/** Reads stored content chunk by chunk and checks that it is what its digest says. */
import { createHash } from 'node:crypto';
import { OperationalError, UsageError } from '../platform/errors.ts';
import type { Bus } from '../platform/nats/bus.ts';
import { headerNames, isSha256, subjects } from '../platform/topology.ts';
import { request } from './request.ts';

/**
 * The bytes with this SHA-256, as they come. Throws DIGEST_MISMATCH at the end when they are others, so use none of
 * them before the stream has ended without an error.
 */
export async function* downloadContent(
  bus: Bus,
  tenant: string,
  sha256: string,
): AsyncGenerator<Uint8Array, void> {
  if (!isSha256(sha256)) throw new UsageError(`${sha256}: not a SHA-256 in 64 lower-case hex digits`);
  const hash = createHash('sha256');
  let offset = 0;
  let size = Number.POSITIVE_INFINITY;
  while (offset < size) {
    const chunk = await readChunk(bus, tenant, sha256, offset);
    size = chunk.size;
    if (chunk.bytes.length === 0 && offset < size)
      throw new OperationalError(
        'DOWNLOAD_STUCK',
        `download of ${sha256} ends at ${offset} of ${size} bytes`,
      );
    offset += chunk.bytes.length;
    hash.update(chunk.bytes);
    if (chunk.bytes.length > 0) yield chunk.bytes;
  }
  const actual = hash.digest('hex');
  if (actual !== sha256)
    throw new OperationalError(
      'DIGEST_MISMATCH',
      `download of ${sha256} brought bytes with SHA-256 ${actual}`,
    );
}

async function readChunk(bus: Bus, tenant: string, sha256: string, offset: number) {
  const headers = { [headerNames.offset]: String(offset) };
  const subject = subjects.download(tenant, sha256);
  const reply = await request(bus, subject, new Uint8Array(), { headers, timeoutMs: 30_000 });
  const size = Number(reply.headers[headerNames.size]);
  if (!Number.isSafeInteger(size) || size < 0)
    throw new OperationalError('BAD_REPLY', `${subject}: the reply does not say how large the content is`);
  return { bytes: reply.data, size };
}
