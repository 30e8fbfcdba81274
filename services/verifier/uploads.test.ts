import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, test } from 'node:test';
import type { TestNats } from '../../test/with-nats.ts';
import { eventually, startTestNats } from '../../test/with-nats.ts';
import { createLogger } from '../platform/log.ts';
import { chunkBytes, headerNames, objectKey, requestFilters, subjects } from '../platform/topology.ts';
import { OpenUploads } from './open-uploads.ts';
import { sha256Hex } from './plugins.ts';
import { readProgress, SeenContent } from './upload-progress.ts';
import type { UploadParts } from './uploads.ts';
import { answerUpload } from './uploads.ts';

const maxBytes = 4 * 1024 * 1024;
let nats: TestNats;
let parts: UploadParts;
let open: OpenUploads;
let nowMs = Date.now();
const clock = { nowMs: () => nowMs, monotonicMs: () => nowMs };
before(async () => {
  nats = await startTestNats();
  const { bus } = nats;
  parts = {
    plugins: await bus.objects('plugins'),
    uploads: await bus.kv('uploads'),
    log: createLogger('test', 'fatal'),
    maxBytes,
    refuse: (tenant, size) => open.refuse(tenant, size),
    seen: new SeenContent(),
    onStored: (key, size) => open.noteStored(key, size),
  };
  const quota = { uploads: 3, bytes: 2 * maxBytes, storedBytes: 4 * maxBytes };
  open = await OpenUploads.watch(parts.uploads, quota, clock);
  // Two verifiers share the chunks of one upload between them: neither sees all of them.
  for (const verifier of [parts, { ...parts, seen: new SeenContent() }])
    bus.serve(requestFilters.upload, 'verifier', (request) => answerUpload(verifier, request));
});
after(async () => {
  open.stop();
  await nats.stop();
});

async function send(sha256: string, size: number, offset: number, chunk: Uint8Array, tenant = 'acme') {
  const headers = { [headerNames.size]: String(size), [headerNames.offset]: String(offset) };
  const reply = await nats.bus.request(subjects.upload(tenant, sha256), chunk, headers);
  const error = reply.headers[headerNames.error] ?? null;
  const text = Buffer.from(reply.data).toString();
  return error === null
    ? { error, ...(JSON.parse(text) as { offset: number; complete: boolean }) }
    : { error, text };
}

async function sendAll(bytes: Uint8Array, sha256 = sha256Hex(bytes), from = 0) {
  let last: Awaited<ReturnType<typeof send>> | null = null;
  for (let offset = from; offset < bytes.length; offset += chunkBytes)
    last = await send(sha256, bytes.length, offset, bytes.subarray(offset, offset + chunkBytes));
  return last;
}

async function stored(sha256: string): Promise<Buffer | null> {
  const chunks: Uint8Array[] = [];
  const key = objectKey('acme', sha256);
  const there = await parts.plugins.read(key, sha256, (chunk) => void chunks.push(chunk));
  return there ? Buffer.concat(chunks) : null;
}

test('chunks become one object, whichever verifier takes them', async () => {
  const bytes = randomBytes(3 * chunkBytes + 17);
  assert.deepEqual(await sendAll(bytes), { error: null, offset: bytes.length, complete: true });
  assert.deepEqual(await stored(sha256Hex(bytes)), bytes);
  const info = await parts.plugins.info(objectKey('acme', sha256Hex(bytes)));
  assert.deepEqual(Buffer.from(info?.metadata.head ?? '', 'base64'), bytes.subarray(0, 256));
});

test('an upload goes on where it stopped, and a repeated chunk does no harm', async () => {
  const bytes = randomBytes(2 * chunkBytes);
  const sha256 = sha256Hex(bytes);
  const none = new Uint8Array();
  assert.deepEqual(await send(sha256, bytes.length, 0, none), { error: null, offset: 0, complete: false });
  const first = bytes.subarray(0, chunkBytes);
  assert.deepEqual(await send(sha256, bytes.length, 0, first), {
    error: null,
    offset: chunkBytes,
    complete: false,
  });
  assert.deepEqual(await send(sha256, bytes.length, 0, first), {
    error: null,
    offset: chunkBytes,
    complete: false,
  });
  assert.deepEqual(await send(sha256, bytes.length, 0, none), {
    error: null,
    offset: chunkBytes,
    complete: false,
  });
  await sendAll(bytes, sha256, chunkBytes);
  assert.deepEqual(await send(sha256, bytes.length, 0, none), {
    error: null,
    offset: bytes.length,
    complete: true,
  });
});

test('bytes that are not those of the digest are refused and forgotten', async () => {
  const bytes = randomBytes(chunkBytes + 1);
  const promised = sha256Hex(randomBytes(8));
  const reply = await sendAll(bytes, promised);
  assert.equal(reply?.error, 'DIGEST_MISMATCH');
  assert.equal(await parts.plugins.info(objectKey('acme', promised)), null);
  assert.deepEqual(await send(promised, bytes.length, 0, new Uint8Array()), {
    error: null,
    offset: 0,
    complete: false,
  });
});

test("another tenant's upload is neither seen nor used: the same bytes come again, and are another object", async () => {
  const bytes = randomBytes(chunkBytes + 5);
  const sha256 = sha256Hex(bytes);
  await sendAll(bytes);
  const unknown = { error: null, offset: 0, complete: false };
  assert.deepEqual(await send(sha256, bytes.length, 0, new Uint8Array(), 'other'), unknown);
  assert.equal(await parts.plugins.info(objectKey('other', sha256)), null);
  assert.notEqual(await parts.plugins.info(objectKey('acme', sha256)), null);
});

/** An upload of which a verifier added `second` to the store, and died before it noted that. */
async function brokenOff(second: (bytes: Buffer) => Uint8Array) {
  const bytes = randomBytes(2 * chunkBytes);
  const sha256 = sha256Hex(bytes);
  await send(sha256, bytes.length, 0, bytes.subarray(0, chunkBytes));
  const stored = await parts.uploads.get(objectKey('acme', sha256));
  const { id, last } = readProgress(stored?.value ?? new Uint8Array());
  assert.notEqual(await parts.plugins.append(id, second(bytes), last), null);
  return { bytes, sha256 };
}

test('a chunk that is stored and not noted is not stored twice', async () => {
  const { bytes, sha256 } = await brokenOff((all) => all.subarray(chunkBytes));
  const done = { error: null, offset: bytes.length, complete: true };
  assert.deepEqual(await sendAll(bytes, sha256, chunkBytes), done);
  assert.deepEqual(await stored(sha256), bytes);
});

test('other bytes where a chunk belongs: the upload is begun again', async () => {
  const { bytes, sha256 } = await brokenOff(() => randomBytes(chunkBytes));
  assert.equal((await sendAll(bytes, sha256, chunkBytes))?.error, 'UPLOAD_LOST');
  await sendAll(bytes, sha256);
  assert.deepEqual(await stored(sha256), bytes);
});

const refused: [what: string, code: string, request: () => ReturnType<typeof send>][] = [
  ['too large', 'PLUGIN_TOO_LARGE', () => send('b'.repeat(64), maxBytes + 1, 0, new Uint8Array(1))],
  ['beyond its own size', 'MALFORMED', () => send('b'.repeat(64), 1, 0, new Uint8Array(2))],
  [
    'a chunk too long',
    'MALFORMED',
    () => send('b'.repeat(64), 2 * chunkBytes, 0, new Uint8Array(chunkBytes + 1)),
  ],
  ['a chunk too short', 'MALFORMED', () => send('b'.repeat(64), chunkBytes, 0, new Uint8Array(100))],
  ['a digest that is none', 'MALFORMED', () => send('xyz', 1, 0, new Uint8Array(1))],
  ['a tenant that is none', 'MALFORMED', () => send('b'.repeat(64), 1, 0, new Uint8Array(1), 'ACME')],
];
for (const [what, code, request] of refused)
  test(`refused, ${what}: ${code}`, async () => assert.equal((await request()).error, code));

test('a tenant has a quota of uploads that have begun; another tenant has its own; abandoned ones make room', async () => {
  const begin = async (tenant: string) => {
    const bytes = randomBytes(chunkBytes);
    return { bytes, answer: await send(sha256Hex(bytes), bytes.length, 0, bytes.subarray(0, 4096), tenant) };
  };
  const begun = [await begin('greedy'), await begin('greedy'), await begin('greedy')];
  await eventually('seen', () => open.refuse('greedy', 1) !== null);
  assert.equal((await begin('greedy')).answer.error, 'QUOTA_EXCEEDED');
  assert.equal((await begin('modest')).answer.error, null);
  const [first] = begun;
  const sha256 = sha256Hex(first?.bytes ?? new Uint8Array());
  const { id } = readProgress((await parts.uploads.get(`greedy.${sha256}`))?.value ?? new Uint8Array());
  assert.notEqual(await parts.plugins.chunkAfter(id, 0), null);
  assert.equal(await open.collect(parts), 0);
  nowMs += 7 * 3_600_000;
  assert.ok((await open.collect(parts)) >= 3);
  assert.equal(await parts.uploads.get(`greedy.${sha256}`), null);
  assert.equal(await parts.plugins.chunkAfter(id, 0), null);
  assert.equal((await begin('greedy')).answer.error, null);
});

test('more bytes than the quota are refused before they come', async () => {
  assert.match(open.refuse('large', 2 * maxBytes + 1) ?? '', /at most/);
  assert.equal(open.refuse('large', 2 * maxBytes), null);
  open.noteStored(objectKey('large', 'a'.repeat(64)), 3 * maxBytes);
  assert.match(open.refuse('large', 2 * maxBytes) ?? '', /in the store, at most/);
  assert.equal(open.refuse('small', 2 * maxBytes), null);
});
