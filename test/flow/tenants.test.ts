/** Tenants come and go, and keys change, while everything runs. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import type { OperationalError } from '../../services/client/index.ts';
import { connect, uuidV7 } from '../../services/client/index.ts';
import { eventually } from '../with-nats.ts';
import type { TestSystem } from '../with-system.ts';
import { finished, startTestSystem, text } from '../with-system.ts';

let system: TestSystem;
before(async () => {
  system = await startTestSystem();
});
after(() => system.stop());

const root = join(import.meta.dirname, '../..');

async function sandbus(...args: string[]): Promise<string> {
  const program = join(root, 'services/cli/sandbus');
  const env = { PATH: process.env.PATH ?? '', SANDBUS_STATE_DIR: system.stateDir };
  return (await promisify(execFile)(program, args, { env })).stdout;
}

const runs = async (client = system.client) => {
  const bytes = Buffer.from('echo here\n');
  const { jobId } = await client.submit({
    plugin: { name: 'a.sh', bytes },
    envelope: system.sign('a.sh', bytes),
  });
  assert.equal(text(finished(await client.wait(jobId)).stdout.inline), 'here\n');
};

test('a tenant that is added can work at once, and the others do not notice', async () => {
  const following = system.client.records({ after: 'now' });
  const next = following.next();
  const file = (await sandbus('tenant', 'add', 'newcomer')).trim();
  assert.equal((await stat(file)).mode & 0o777, 0o600);
  const options = { url: system.url, tenant: 'newcomer', credentials: file };
  const client = await whenever('the newcomer is let in', () => connect({ ...options, timeoutMs: 500 }));
  try {
    await runs(client);
    await runs();
    assert.equal((await next).value?.record.tenant, 'acme');
  } finally {
    await following.return(undefined);
    await client.close();
  }
  await assert.rejects(sandbus('tenant', 'add', 'newcomer'), /is there/);
  await assert.rejects(
    sandbus('tenant', 'add', '_tenant'),
    /use 1 to 63 of a-z.*the first a letter or digit/,
  );
});

test('a tenant that is removed is cut off, and those who wait are told', async () => {
  const file = (await sandbus('tenant', 'add', 'leaver')).trim();
  const options = { url: system.url, tenant: 'leaver', credentials: file, timeoutMs: 500 };
  const kept = `${file}.kept`;
  await promisify(execFile)('cp', [file, kept]);
  const whose = (credentials: string) => connect({ ...options, credentials });
  const waiting = [await whenever('let in', () => whose(file)), await whose(kept)];
  const refusal = /does not accept the credentials in .*leaver\.nk/;
  const told = waiting.map((client) =>
    assert.rejects(client.wait(uuidV7()), (error: OperationalError) => {
      assert.equal(error.code, 'NATS_REFUSED');
      assert.match(error.message, refusal);
      return true;
    }),
  );
  await sandbus('tenant', 'remove', 'leaver');
  await Promise.all(told);
  for (const client of waiting) {
    await assert.rejects(client.cancel(uuidV7(), 'a test'), refusal);
    await client.close();
  }
  await eventually('refused', () =>
    connect({ ...options, credentials: kept }).then(
      (still) => still.close().then(() => false),
      (error: Error) => /does not accept/.test(error.message),
    ),
  );
  await runs();
});

test('the event key of each service changes while jobs run', async () => {
  for (const service of ['verifier', 'router', 'executor', 'audit']) {
    const running = Promise.all([runs(), runs()]);
    await sandbus('service-keys', 'rotate', service);
    await running;
    await runs();
    await sandbus('service-keys', 'retire', service);
    await runs();
  }
});

async function whenever<T>(what: string, get: () => Promise<T>): Promise<T> {
  const got: T[] = [];
  await eventually(what, () =>
    get().then(
      (value) => got.push(value) > 0,
      () => false,
    ),
  );
  return got[0] ?? assert.fail(what);
}
