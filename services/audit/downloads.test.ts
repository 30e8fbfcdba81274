import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { chunkBytes, headerNames, objectKey, subjects } from '../platform/topology.ts';
import type { Fixture } from './fixture.ts';
import { fixture, stopTelemetry } from './fixture.ts';

let f: Fixture;
before(async () => {
  f = await fixture();
  await f.startAudit();
});
after(async () => {
  await f[Symbol.asyncDispose]();
  await stopTelemetry();
});

const bytes = randomBytes(chunkBytes * 2 + 1234);
const sha256 = createHash('sha256').update(bytes).digest('hex');

async function download(tenant: string, digest: string, offset?: string) {
  const headers = offset === undefined ? {} : { [headerNames.offset]: offset };
  const { data, headers: said } = await f.bus.request(
    subjects.download(tenant, digest),
    new Uint8Array(),
    headers,
  );
  return { data: Buffer.from(data), error: said[headerNames.error], size: said[headerNames.size] };
}

test('an artifact comes in chunks from any offset, to its own tenant alone', async () => {
  const artifacts = await f.bus.objects('artifacts');
  await artifacts.put(objectKey('acme', sha256), [bytes]);
  const chunks = [];
  for (let offset = 0; offset < bytes.length; offset += chunks.at(-1)?.length ?? bytes.length) {
    const chunk = await download('acme', sha256, String(offset));
    assert.equal(chunk.size, String(bytes.length));
    chunks.push(chunk.data);
  }
  assert.deepEqual(
    chunks.map((chunk) => chunk.length),
    [chunkBytes, chunkBytes, 1234],
  );
  assert.ok(Buffer.concat(chunks).equals(bytes));
  assert.equal((await download('acme', sha256, String(bytes.length))).data.length, 0);
  assert.ok((await download('acme', sha256, '7')).data.equals(bytes.subarray(7, 7 + chunkBytes)));
  assert.equal((await download('spy', sha256)).error, 'NOT_FOUND');
  assert.deepEqual(await readdir(join(f.stateDir, 'downloads')), []);
});

test('an artifact whose bytes are not those of its digest is not given out', async () => {
  const digest = 'a'.repeat(64);
  await (await f.bus.objects('artifacts')).put(objectKey('acme', digest), [Buffer.from('forged')]);
  const reply = await download('acme', digest);
  assert.equal(reply.error, 'UNAVAILABLE');
  assert.match(reply.data.toString(), /has SHA-256/);
});

for (const [tenant, digest, offset, error] of [
  ['acme', 'b'.repeat(64), '0', 'NOT_FOUND'],
  ['acme', 'nonsense', '0', 'BAD_REQUEST'],
  ['UPPER', sha256, '0', 'BAD_REQUEST'],
  ['acme', sha256, '-1', 'BAD_REQUEST'],
  ['acme', sha256, 'x', 'BAD_REQUEST'],
  ['acme', sha256, '', 'BAD_REQUEST'],
  ['acme', sha256, '1e2', 'BAD_REQUEST'],
  ['acme', sha256, String(bytes.length + 1), 'BAD_REQUEST'],
] as const)
  test(`${tenant} ${digest.slice(0, 8)} ${offset}: ${error}`, async () => {
    assert.equal((await download(tenant, digest, offset)).error, error);
  });
