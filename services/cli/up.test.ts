/** `sandbus up` and Ctrl-C: once lets running jobs end, twice ends them at once; nothing is left either way. */
import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { eventually, testedServer } from '../../test/with-nats.ts';
import { finished, processesWith, sha256, text } from '../../test/with-system.ts';
import type { SandbusClient } from '../client/index.ts';
import { connect } from '../client/index.ts';
import { tenantCredentials } from '../platform/access-paths.ts';
import type { Child } from '../platform/process.ts';
import { startChild } from '../platform/process.ts';
import { envelopeFor, expectValue, statementOf, trustStoreOf } from '../trust/fixture.ts';
import { encodeTrustStore, generateKey, publicKeyToPem, signTrustStore } from '../trust/index.ts';
import { sandbusProgram } from './cli-process.ts';

let state: string;
const [root, key] = [generateKey(), generateKey()];
before(async () => {
  state = await mkdtemp(join(tmpdir(), 'sandbus-up-'));
  const store = expectValue(encodeTrustStore(trustStoreOf(key)));
  await writeFile(join(state, 'trust.json'), signTrustStore(store, root));
  await writeFile(join(state, 'root.pub'), publicKeyToPem(root.publicKey));
});
after(async () => {
  for (const child of children) child.kill('SIGTERM');
  for (const child of children) await child.exited;
  await rm(state, { recursive: true, force: true });
});

const children: Child[] = [];
const most = {
  network: 'none',
  limits: { memoryBytes: 256 * 1024 * 1024, cpuMillis: 1000, wallMs: 600_000, processes: 128 },
} as const;

interface Up {
  readonly child: Child;
  readonly client: SandbusClient;
  said(): string;
}

async function up(): Promise<Up> {
  const { program } = testedServer();
  const env = {
    ...{ PATH: '/usr/local/bin:/usr/bin:/bin', SANDBUS_GRACE_MS: '15000', SANDBUS_SIZE_FACTOR: '0.05' },
    ...(program === undefined ? {} : { SANDBUS_NATS_SERVER: program }),
  };
  const args = ['up', '--port', '0', '--state', state];
  const child = await startChild(sandbusProgram, args, { env, stdio: ['ignore', 'ignore', 'pipe'] });
  children.push(child);
  let said = '';
  child.stderr?.on('data', (bytes) => {
    said += bytes;
  });
  await eventually('up is ready', () => /ready: SANDBUS_NATS_URL/.test(said), 30_000);
  const url = /SANDBUS_NATS_URL=(\S+);/.exec(said)?.[1] ?? '';
  const client = await connect({ url, credentials: tenantCredentials(state, 'default') });
  return { child, client, said: () => said };
}

/** Submits a job, and returns its id when it runs. */
async function runs(client: SandbusClient, source: string): Promise<string> {
  const bytes = Buffer.from(source);
  const envelope = envelopeFor(statementOf('a.sh', sha256(bytes), most), [key]);
  const limits = { wallMs: 60_000 };
  const { jobId } = await client.submit({ plugin: { name: 'a.sh', bytes }, envelope, limits });
  for await (const { record } of client.records({ jobId })) if (record.kind === 'started') break;
  return jobId;
}

async function nothingLeft(marker: string): Promise<void> {
  assert.deepEqual(await processesWith(state), []);
  assert.deepEqual(await processesWith(marker), []);
  assert.deepEqual(await readdir(join(state, 'executor/jobs')).catch(() => []), []);
}

test('Ctrl-C says how long running jobs have; one that ends in that time is recorded as it ended', {
  timeout: 90_000,
}, async () => {
  const { child, client, said } = await up();
  const result = client.wait(await runs(client, 'sleep 2.717; echo in time\n'));
  child.kill('SIGINT');
  assert.equal(text(finished(await result).stdout.inline), 'in time\n');
  await client.close();
  assert.deepEqual(await child.exited, { code: 0, signal: null });
  assert.match(said(), /running jobs have 15 s to end, .*Ctrl-C again ends them now/);
  await nothingLeft('2.717');
});

test('Ctrl-C again ends running jobs at once; their end is recorded', { timeout: 90_000 }, async () => {
  const { child, client, said } = await up();
  const result = client.wait(await runs(client, '(setsid sleep 271.828 &) ; sleep 271.828\n'));
  child.kill('SIGINT');
  await eventually('it stops', () => /stopping/.test(said()));
  child.kill('SIGINT');
  const event = finished(await result);
  assert.deepEqual([event.outcome, event.error?.step], ['cancelled', 'executor-shutdown']);
  await client.close();
  assert.deepEqual(await child.exited, { code: 0, signal: null });
  await nothingLeft('271.828');
});

test('a second one on the same folder is refused, and says who has it', { timeout: 90_000 }, async () => {
  const { child, client } = await up();
  const second = await ends(sandbusProgram, ['up', '--port', '0', '--state', state]);
  assert.deepEqual(second, {
    code: 1,
    said: `sandbus: ${state} is in use by \`sandbus up\` with process id ${child.pid}\n`,
  });
  await client.close();
  child.kill('SIGINT');
  await child.exited;
});

const unusable: readonly [what: string, prepare: string, why: string][] = [
  ['read-only', 'mount -t tmpfs -o ro tmpfs "$folder" && state=$folder', 'its file system is read-only'],
  [
    'full',
    'mount -t tmpfs -o nr_inodes=1 tmpfs "$folder" && state=$folder',
    'there is no space left on its disk',
  ],
  [
    'below a file',
    ': >"$folder/file" && state=$folder/file/below',
    'one of the folders in its path is a file',
  ],
];
for (const [what, prepare, why] of unusable)
  test(`a state folder that is ${what} is refused, with the reason`, async () => {
    const folder = await mkdtemp(join(tmpdir(), 'sandbus-unusable-'));
    try {
      // In a mount namespace of its own, so that no mount is left.
      const script = `${prepare} && exec "$program" up --port 0 --state "$state"`;
      const { code, said } = await ends('/usr/bin/unshare', ['-m', 'sh', '-c', script], { folder });
      assert.match(said, new RegExp(`^sandbus: cannot (make|write) ${folder}\\S*: ${why}\n$`));
      assert.equal(code, 2);
    } finally {
      await rm(folder, { recursive: true });
    }
  });

/** What it says on standard error, and how it ends. */
async function ends(program: string, args: readonly string[], more: Record<string, string> = {}) {
  const env = { PATH: '/usr/local/bin:/usr/bin:/bin', program: sandbusProgram, ...more };
  const child = await startChild(program, args, { env, stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  child.stderr?.on('data', (bytes) => {
    said += bytes;
  });
  return { code: (await child.exited).code, said };
}
