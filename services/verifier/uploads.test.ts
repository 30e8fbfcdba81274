import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, test } from 'node:test';
import type { TestNats } from '../../test/with-nats.ts';
import { eventually, startTestNats } from '../../test/with-nats.ts';
import { createLogger } from '../platform/log.ts';
import { chunkBytes, headerNames, requestFilters, subjects } from '../platform/topology.ts';
import { OpenUploads } from './open-uploads.ts';
import { sha256Hex } from './plugins.ts';
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
  };
  open = await OpenUploads.watch(parts.uploads, { uploads: 3, bytes: 2 * maxBytes }, clock);
  // Two verifiers share the chunks of one upload between them.
  for (let i = 0; i < 2; i++)
    bus.serve(requestFilters.upload, 'verifier', (request) => answerUpload(parts, request));
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
  const there = await parts.plugins.read(sha256, sha256, (chunk) => void chunks.push(chunk));
  return there ? Buffer.concat(chunks) : null;
}

test('chunks become one object, whichever verifier takes them', async () => {
  const bytes = randomBytes(3 * chunkBytes + 17);
  assert.deepEqual(await sendAll(bytes), { error: null, offset: bytes.length, complete: true });
  assert.deepEqual(await stored(sha256Hex(bytes)), bytes);
  const info = await parts.plugins.info(sha256Hex(bytes));
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
  assert.equal(await parts.plugins.info(promised), null);
  assert.deepEqual(await send(promised, bytes.length, 0, new Uint8Array()), {
    error: null,
    offset: 0,
    complete: false,
  });
});

const refused: [what: string, code: string, request: () => ReturnType<typeof send>][] = [
  ['too large', 'PLUGIN_TOO_LARGE', () => send('b'.repeat(64), maxBytes + 1, 0, new Uint8Array(1))],
  ['beyond its own size', 'MALFORMED', () => send('b'.repeat(64), 1, 0, new Uint8Array(2))],
  [
    'a chunk too long',
    'MALFORMED',
    () => send('b'.repeat(64), 2 * chunkBytes, 0, new Uint8Array(chunkBytes + 1)),
  ],
  ['a digest that is none', 'MALFORMED', () => send('xyz', 1, 0, new Uint8Array(1))],
  ['a tenant that is none', 'MALFORMED', () => send('b'.repeat(64), 1, 0, new Uint8Array(1), 'ACME')],
];
for (const [what, code, request] of refused)
  test(`refused, ${what}: ${code}`, async () => assert.equal((await request()).error, code));

test('a tenant has a quota of uploads that have begun; another tenant has its own; abandoned ones make room', async () => {
  const begin = async (tenant: string) => {
    const bytes = randomBytes(chunkBytes);
    return { bytes, answer: await send(sha256Hex(bytes), bytes.length, 0, bytes.subarray(0, 1000), tenant) };
  };
  const begun = [await begin('greedy'), await begin('greedy'), await begin('greedy')];
  await eventually('seen', () => open.refuse('greedy', 1) !== null);
  assert.equal((await begin('greedy')).answer.error, 'QUOTA_EXCEEDED');
  assert.equal((await begin('modest')).answer.error, null);
  assert.equal(await open.collect(parts), 0);
  nowMs += 7 * 3_600_000;
  assert.ok((await open.collect(parts)) >= 3);
  const [first] = begun;
  const sha256 = sha256Hex(first?.bytes ?? new Uint8Array());
  assert.equal(await parts.uploads.get(`greedy.${sha256}`), null);
  const part = sha256Hex(first?.bytes.subarray(0, 1000) ?? new Uint8Array());
  assert.equal(await parts.plugins.info(`part.greedy.${sha256}.0.${part}`), null);
  assert.equal((await begin('greedy')).answer.error, null);
});

test('more bytes than the quota are refused before they come', async () => {
  assert.match(open.refuse('large', 2 * maxBytes + 1) ?? '', /at most/);
  assert.equal(open.refuse('large', 2 * maxBytes), null);
});
