/**
 * A client that shares no code with the services: the `nats` package, the .avsc files, node:crypto, and the documents.
 * It publishes a signed job and reads the result, as a program in any language could.
 */
import assert from 'node:assert/strict';
import type { KeyObject } from 'node:crypto';
import { createHash, generateKeyPairSync, sign } from 'node:crypto';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import avro from 'avsc';
import type { NatsConnection } from 'nats';
import { connect, headers, nkeyAuthenticator } from 'nats';
import type { System } from '../../services/cli/system.ts';
import { startAll } from '../../services/cli/system.ts';

const schemas = join(import.meta.dirname, '../../schemas');
const stateDir = mkdtempSync(join(tmpdir(), 'sandbus-test-'));
let system: System;
let nats: NatsConnection;
const { publicKey, privateKey } = generateKeyPairSync('ed25519');

before(async () => {
  const from = '2026-01-01T00:00:00Z';
  const to = '2099-01-01T00:00:00Z';
  const scope = { plugins: ['*'], tenants: ['*'], gpu: false, network: false };
  const key = {
    publicKey: publicKey.export({ type: 'spki', format: 'pem' }),
    owner: 'raw',
    scope,
    notBefore: from,
    expires: to,
  };
  const store = { version: 1, expires: to, threshold: 1, keys: [key], revokedKeys: [], revokedDigests: [] };
  const root = generateKeyPairSync('ed25519');
  const type = 'application/vnd.sandbus.trust-store+json';
  const signedStore = seal(type, Buffer.from(JSON.stringify(store)), root.privateKey);
  writeFileSync(join(stateDir, 'trust.json'), JSON.stringify({ rotations: [], store: signedStore }));
  writeFileSync(join(stateDir, 'root.pub'), root.publicKey.export({ type: 'spki', format: 'pem' }));
  const most = { memoryBytes: 2 ** 30, cpuMillis: 2000, wallMs: 60_000, cpuTimeMs: null, processes: 256 };
  const ceilings = {
    ...most,
    outputBytes: 2 ** 20,
    tmpBytes: 2 ** 26,
    network: false,
    gpu: false,
    concurrency: 4,
    maxAttempts: 1,
  };
  writeFileSync(join(stateDir, 'policy.json'), JSON.stringify({ default: ceilings, tenants: {} }));
  system = await startAll({ stateDir, port: 0, logs: 'files', sizeFactor: 0.2, tenants: ['acme'] });
  // The file that the operator gives to a tenant: its seed stands between two lines of dashes.
  const seed = /^SU\w+$/m.exec(readFileSync(join(stateDir, 'access/tenants/acme.nk'), 'utf8'))?.[0] ?? '';
  nats = await connect({ servers: system.url, authenticator: nkeyAuthenticator(Buffer.from(seed)) });
});
after(async () => {
  await nats.close();
  await system.stop();
  await rm(stateDir, { recursive: true, force: true });
});

/** CRC-64-AVRO from the specification, over the canonical form. */
function fingerprint(schema: avro.Type): Buffer {
  const empty = 0xc15d213aa4d7a795n;
  let crc = empty;
  for (const byte of Buffer.from(JSON.stringify(schema.schema()))) {
    let entry = (crc ^ BigInt(byte)) & 0xffn;
    for (let i = 0; i < 8; i++) entry = (entry >> 1n) ^ (empty & -(entry & 1n));
    crc = (crc >> 8n) ^ entry;
  }
  const out = Buffer.alloc(8);
  out.writeBigUInt64LE(crc);
  return out;
}

const load = (name: string) =>
  avro.Type.forSchema(JSON.parse(readFileSync(join(schemas, `${name}.avsc`), 'utf8')));
const marker = Buffer.from([0xc3, 0x01]);

function encode(name: string, value: unknown): Buffer {
  const type = load(name);
  return Buffer.concat([marker, fingerprint(type), type.toBuffer(value)]);
}

function decode(name: string, data: Uint8Array): Record<string, unknown> {
  const type = load(name);
  const bytes = Buffer.from(data);
  assert.deepEqual(bytes.subarray(0, 10), Buffer.concat([marker, fingerprint(type)]), `is a ${name}`);
  return type.fromBuffer(bytes.subarray(10));
}

/** A DSSE envelope over an in-toto statement, by the specifications of both. */
function envelopeFor(name: string, plugin: Buffer): Buffer {
  const limits = { memoryBytes: 2 ** 28, cpuMillis: 1000, wallMs: 10_000, processes: 64 };
  const window = { notBefore: '2026-01-01T00:00:00Z', expires: '2099-01-01T00:00:00Z' };
  const predicate = {
    name: 'raw',
    version: '1',
    runtime: 'bash',
    requiresGpu: false,
    network: 'none',
    limits,
    ...window,
  };
  const payload = Buffer.from(
    JSON.stringify({
      _type: 'https://in-toto.io/Statement/v1',
      subject: [{ name, digest: { sha256: createHash('sha256').update(plugin).digest('hex') } }],
      predicateType: 'urn:sandbus:plugin:v1',
      predicate,
    }),
  );
  return Buffer.from(JSON.stringify(seal('application/vnd.in-toto+json', payload, privateKey)));
}

function seal(payloadType: string, payload: Buffer, key: KeyObject) {
  const head = `DSSEv1 ${payloadType.length} ${payloadType} ${payload.length} `;
  const sig = sign(null, Buffer.concat([Buffer.from(head), payload]), key);
  const signatures = [{ sig: sig.toString('base64') }];
  return { payloadType, payload: payload.toString('base64'), signatures };
}

test('the bus itself tells how to decode each event', async () => {
  const ask = { what: 'schema', fingerprint: fingerprint(load('JobSubmitted')).toString('hex') };
  const reply = await nats.request('audit-read.acme', JSON.stringify(ask));
  assert.equal(JSON.parse(reply.string()).name, 'JobSubmitted');
});

test('a job is submitted, followed and read with nothing but nats and the .avsc files', async () => {
  const jobId = '019d5f00-1111-7222-8333-444455556666';
  const plugin = Buffer.from('#!/bin/bash\necho "hello $1"\ncat\nexit 3\n');
  const stdin = Buffer.from('from stdin\n');
  const content = (bytes: Buffer) => ({
    inline: bytes,
    sha256: createHash('sha256').update(bytes).digest('hex'),
    size: bytes.length,
  });
  const none = {
    memoryBytes: null,
    cpuMillis: null,
    wallMs: null,
    cpuTimeMs: null,
    processes: null,
    outputBytes: null,
    tmpBytes: null,
  };

  const live = nats.subscribe(`audit.acme.${jobId}.>`);
  const submission = encode('JobSubmitted', {
    jobId,
    tenant: 'acme',
    submittedAt: Date.now() * 1000,
    plugin: { name: 'raw.sh', content: content(plugin) },
    envelope: envelopeFor('raw.sh', plugin),
    args: ['world'],
    env: {},
    stdin: content(stdin),
    inputs: [],
    limits: none,
    requiresGpu: false,
    network: 'none',
    maxAttempts: 1,
    deadline: null,
    labels: {},
  });
  const trace = headers();
  trace.set('traceparent', '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01');
  const ack = await nats.jetstream().publish(`job.submitted.acme.${jobId}`, submission, { headers: trace });
  assert.equal(ack.stream, 'SUBMISSIONS');

  const kinds: string[] = [];
  let finished: Record<string, unknown> = {};
  for await (const message of live) {
    const record = decode('AuditRecord', message.data);
    assert.equal(record.tenantSequence, kinds.length);
    kinds.push(String(record.kind));
    if (record.kind === 'finished' || record.kind === 'rejected') {
      const name = record.kind === 'finished' ? 'JobFinished' : 'JobRejected';
      finished = decode(name, record.payload as Buffer);
      break;
    }
  }
  assert.deepEqual(kinds, ['submitted', 'verified', 'routed', 'started', 'finished']);
  assert.equal(finished.outcome, 'exited', JSON.stringify(finished));
  assert.equal(finished.exitCode, 3);
  assert.equal(String((finished.stdout as { inline: Buffer }).inline), 'hello world\nfrom stdin\n');

  const page = await nats.request('audit-read.acme', JSON.stringify({ what: 'records', after: 1, jobId }));
  const items = decode('AuditPage', page.data).items as { bytes: Buffer }[];
  assert.deepEqual(
    items.map((item) => decode('AuditRecord', item.bytes).kind),
    ['routed', 'started', 'finished'],
  );
});
