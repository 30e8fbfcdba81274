/**
 * CRC-64-AVRO, the fingerprint of a schema's Parsing Canonical Form, as single-object encoding carries it.
 * Source: Apache Avro specification, "Schema Fingerprints".
 */
const empty = 0xc15d213aa4d7a795n;

const table = Array.from({ length: 256 }, (_, index) => {
  let value = BigInt(index);
  for (let bit = 0; bit < 8; bit++) value = (value >> 1n) ^ (empty & -(value & 1n));
  return BigInt.asUintN(64, value);
});

/** Fingerprint of `bytes` as an unsigned 64-bit number. */
export function crc64Avro(bytes: Uint8Array): bigint {
  let value = empty;
  for (const byte of bytes) value = (value >> 8n) ^ (table[Number((value ^ BigInt(byte)) & 0xffn)] ?? 0n);
  return value;
}

/** The fingerprint as the eight little-endian bytes that follow C3 01. */
export function fingerprintBytes(fingerprint: bigint): Uint8Array {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(fingerprint);
  return bytes;
}

/** What single-object encoding puts before a body: C3 01 and the fingerprint (Avro specification, "Single-object encoding"). */
export function singleObjectHeader(fingerprint: bigint): Buffer {
  return Buffer.concat([Buffer.from([0xc3, 0x01]), fingerprintBytes(fingerprint)]);
}

/** Key of a schema in the KV bucket `schemas`: the little-endian bytes in hex, as they stand in a message. */
export function fingerprintKey(fingerprint: bigint): string {
  return Buffer.from(fingerprintBytes(fingerprint)).toString('hex');
}
