/** Reading the ledger by time and tenant, exporting it, summing system calls, and erasing payloads. */
import assert from 'node:assert/strict';
import { mkdir, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { eventually } from '../../test/with-nats.ts';
import { tenantCredentials, userCredentials } from '../platform/access-paths.ts';
import { runChild } from '../platform/process.ts';
import { CliFixture, sandbusProgram } from './cli-process.ts';

let cli: CliFixture;
/** Between the first job and the second. */
let betweenMs = 0;
const jobIds: string[] = [];
before(async () => {
  cli = await CliFixture.start();
  jobIds.push((await cli.system.run('first.sh', 'echo first\n')).event.jobId);
  betweenMs = Date.now();
  jobIds.push((await cli.system.run('first.sh', 'echo second; unshare --user true; exit 4\n')).event.jobId);
});
after(() => cli.stop());

const objectsOf = (bytes: Buffer) =>
  bytes
    .toString()
    .trimEnd()
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Record<string, unknown>);

async function listed(...args: string[]): Promise<unknown[]> {
  const { stdout, stderr, code } = await cli.sandbus(['audit', 'list', '--json', ...args]);
  assert.equal(code, 0, stderr);
  return objectsOf(stdout).map(({ tenantSequence }) => tenantSequence);
}

describe('where reading begins', () => {
  it('a sequence, a time, an age', async () => {
    assert.deepEqual(await listed('--since', '7'), [7, 8, 9]);
    assert.deepEqual(await listed('--since', new Date(betweenMs).toISOString()), [5, 6, 7, 8, 9]);
    assert.deepEqual(await listed('--since', '1h ago', '--job', jobIds[1] ?? ''), [5, 6, 7, 8, 9]);
  });

  it('tail goes on from there, and is resumed with the last sequence that it gave', async () => {
    const child = await cli.spawn(['audit', 'tail', '--since', '8', '--json']);
    let text = '';
    child.stdout?.on('data', (bytes: Buffer) => {
      text += bytes.toString();
    });
    const sequences = () => objectsOf(Buffer.from(text)).map(({ tenantSequence }) => tenantSequence);
    try {
      await eventually(
        'it gives what was there',
        () => text.includes('\n') && sequences().length === 2,
        30_000,
      );
      await cli.system.run('first.sh', 'exit 0\n');
      await eventually(
        'it gives what has come',
        () => text.endsWith('\n') && sequences().length === 7,
        30_000,
      );
    } finally {
      child.kill('SIGINT');
    }
    assert.equal((await child.exited).code, 0);
    assert.deepEqual(sequences(), [8, 9, 10, 11, 12, 13, 14]);
    assert.deepEqual(await listed('--after', '12'), [13, 14]);
  });

  const wrong: [args: string[], code: number, says: RegExp][] = [
    [['--since', 'yesterday'], 2, /--since: time yesterday: must be 2h or 2h ago/],
    [['--after', '-2'], 2, /--after: record number -2: must be a whole number, 0 or more/],
    [['--since', '1', '--after', '1'], 2, /--after and --since: one of them/],
    [['--tenant', 'nobody'], 69, /does not accept a connection without credentials: a tenant is made with/],
  ];
  for (const [args, code, says] of wrong)
    it(`${args.join(' ')} is refused in a sentence`, async () => {
      const result = await cli.sandbus(['audit', 'list', ...args]);
      assert.match(result.stderr, says);
      assert.equal(result.code, code, result.stderr);
    });

  it('the credentials of one tenant do not let another one read', async () => {
    const environment = { SANDBUS_NATS_CREDS: tenantCredentials(cli.system.stateDir, 'acme') };
    const result = await cli.sandbus(['audit', 'list', '--tenant', 'other'], undefined, environment);
    assert.match(result.stderr, /cannot read as tenant other: .*acme\.nk is not its file/);
    assert.equal(result.code, 2);
  });
});

describe('credentials that are missing, or of somebody else, are named with what makes them', () => {
  const cases: [args: string[], as: 'nobody' | 'acme', code: number, says: RegExp][] = [
    [['topology'], 'acme', 2, /this takes the credentials of deployment, and .*acme\.nk has others/],
    [['topology'], 'nobody', 69, /without credentials: credentials of services .* `sandbus access init`/],
    [
      ['service', 'router'],
      'nobody',
      69,
      /without credentials: credentials of services .* `sandbus access init`/,
    ],
  ];
  for (const [args, as, code, says] of cases)
    it(`${args.join(' ')} as ${as}`, async () => {
      const file = tenantCredentials(cli.system.stateDir, 'acme');
      const environment = as === 'acme' ? { SANDBUS_NATS_CREDS: file } : undefined;
      const result = await cli.sandbus(args, undefined, environment);
      assert.match(result.stderr, says);
      assert.equal(result.code, code, result.stderr);
    });
});

describe('export', () => {
  it('jsonl has every record with its event, in a file of its own', async () => {
    const file = join(cli.folder, 'records.jsonl');
    const until = new Date(betweenMs).toISOString();
    const { code, stderr } = await cli.sandbus(['audit', 'export', '--until', until, '--out', file]);
    assert.equal(code, 0, stderr);
    const records = objectsOf(await readFile(file));
    assert.deepEqual(
      records.map(({ event }) => (event as { name: string }).name),
      ['JobSubmitted', 'JobVerified', 'JobRouted', 'JobStarted', 'JobFinished'],
    );
    const again = await cli.sandbus(['audit', 'export', '--out', file]);
    assert.match(again.stderr, /cannot write --out .*it is there already, and is not overwritten/);
    assert.equal(again.code, 2);
    assert.deepEqual(
      (await readdir(cli.folder)).filter((name) => name.includes('unfinished')),
      [],
    );
  });
});

it('an export that finds no room is said, and nothing of it stays', async () => {
  const script = `mount -t tmpfs -o size=4k none "$1"; head -c 4096 /dev/zero >"$1/full"
    "$2" audit export --out "$1/all.jsonl" 2>&1; echo "code $?"; ls "$1"`;
  await mkdir(join(cli.folder, 'disk'));
  const args = ['-rm', 'sh', '-c', script, 'sh', join(cli.folder, 'disk'), sandbusProgram];
  const path = '/usr/local/bin:/usr/bin:/bin:/sbin:/usr/sbin';
  const { stdout } = await runChild('/usr/bin/unshare', args, cli.environment({ PATH: path }));
  const [said, ...rest] = stdout.toString().trim().split('\n');
  assert.match(said ?? '', /^sandbus: cannot write --out .*all\.jsonl: there is no space left on its disk$/);
  assert.deepEqual(rest, ['code 2', 'full']);
});

interface Sum {
  readonly syscall: string;
  readonly calls: number;
  readonly runs: number;
}
interface Summary {
  readonly runs: number;
  readonly counted: number;
  readonly allowed: number;
  readonly unavailable: readonly { readonly runs: number }[];
  readonly used: readonly Sum[];
  readonly neverUsed: readonly string[];
  readonly refused: readonly Sum[];
}

describe('syscalls', () => {
  it('sums what was used, names what never was, and what was refused', async () => {
    const { code, stdout, stderr } = await cli.sandbus([
      'audit',
      'syscalls',
      '--plugin',
      'first.sh',
      '--json',
    ]);
    assert.equal(code, 0, stderr);
    const [summary] = objectsOf(stdout) as unknown as Summary[];
    assert.equal(summary?.runs, 3);
    assert.equal(summary.allowed, 215);
    const refused = summary.refused.find(({ syscall }) => syscall === 'unshare');
    assert.deepEqual([refused?.calls, refused?.runs], [1, 1]);
    const uncounted = summary.unavailable.reduce((sum, one) => sum + one.runs, 0);
    assert.equal(summary.counted + uncounted, 3);
    // Where this host cannot count, each run has said why.
    if (summary.counted === 0) return;
    const names = summary.used.map(({ syscall }) => syscall);
    assert.ok(names.includes('execve') && !names.includes('unshare'));
    assert.equal(summary.neverUsed.length, 215 - names.length);
    assert.equal(summary.used.find(({ syscall }) => syscall === 'execve')?.runs, 3);
  });

  it('says when there is no such run', async () => {
    const { code, stderr } = await cli.sandbus(['audit', 'syscalls', '--plugin', 'nothing.sh']);
    assert.match(stderr, /tenant acme has no run of a plugin nothing\.sh/);
    assert.equal(code, 4);
  });
});

describe('erase', () => {
  it('is not for a tenant, nor for a service', async () => {
    const { stateDir } = cli.system;
    for (const credentials of [tenantCredentials(stateDir, 'acme'), userCredentials(stateDir, 'router')]) {
      const args = ['audit', 'erase', jobIds[0] ?? ''];
      const result = await cli.sandbus(args, undefined, { SANDBUS_NATS_CREDS: credentials });
      assert.match(
        result.stderr,
        /^sandbus: this takes the credentials of deployment, and .*nk has others: /,
      );
      assert.equal(result.code, 2);
    }
    assert.ok((await cli.system.client.result(jobIds[0] ?? '')) !== null, 'it is still there');
  });

  it('takes the payloads and leaves the leaves', async () => {
    const leaves = async () => {
      const all = [];
      for await (const { record, event } of cli.system.client.records({ jobId: jobIds[0], follow: false }))
        all.push({ leaf: Buffer.from(record.leafHash).toString('hex'), erased: event === null });
      return all;
    };
    const before = await leaves();
    const proof = await cli.sandbus(['audit', 'prove', jobIds[0] ?? '', '--out', 'before.json']);
    assert.equal(proof.code, 0, proof.stderr);
    const { code, stdout, stderr } = await cli.sandbus(['audit', 'erase', jobIds[0] ?? '']);
    assert.equal(code, 0, stderr);
    assert.match(stdout.toString(), /erased the payloads of 5 records/);
    assert.deepEqual(
      await leaves(),
      before.map(({ leaf }) => ({ leaf, erased: true })),
    );
    // The proof that was made before, and the whole ledger, hold as they did.
    for (const args of [['--proof', 'before.json'], []]) {
      const verdict = await cli.sandbus(['audit', 'verify', ...args]);
      assert.equal(verdict.code, 0, `${args}: ${verdict.stdout}${verdict.stderr}`);
    }
  });

  it('waits for a job to end', async () => {
    const bytes = Buffer.from('sleep 30\n');
    const plugin = { name: 'slow.sh', bytes };
    const { jobId } = await cli.system.client.submit({ plugin, envelope: cli.system.sign('slow.sh', bytes) });
    await eventually('it is recorded', async () => (await cli.system.client.job(jobId)) !== null);
    const open = await cli.sandbus(['audit', 'erase', jobId]);
    assert.match(open.stderr, /has not ended: cancel it, or wait for its end/);
    assert.equal(open.code, 1);
    await cli.system.client.cancel(jobId, 'the test is over');
    await cli.system.client.wait(jobId);
  });

  it('knows which jobs there are', async () => {
    const { code, stderr } = await cli.sandbus(['audit', 'erase', '01900000-0000-7000-8000-000000000000']);
    assert.match(stderr, /there is no job 01900000/);
    assert.equal(code, 4);
  });
});
