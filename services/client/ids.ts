/** The id that the submitter chooses for its job. */
import { randomBytes } from 'node:crypto';

/** A UUIDv7 (RFC 9562): 48 bits of milliseconds, version, 12 random bits, variant, 62 random bits. */
export function uuidV7(nowMs: number = Date.now(), random: Uint8Array = randomBytes(10)): string {
  const bytes = Buffer.alloc(16);
  bytes.writeUIntBE(nowMs, 0, 6);
  bytes.set(random.subarray(0, 10), 6);
  bytes[6] = 0x70 | ((bytes[6] ?? 0) & 0x0f);
  bytes[8] = 0x80 | ((bytes[8] ?? 0) & 0x3f);
  const hex = bytes.toString('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}
