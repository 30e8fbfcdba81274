/** The daily commands against the whole system. */
import assert from 'node:assert/strict';
import { mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { eventually } from '../../test/with-nats.ts';
import { sha256 } from '../../test/with-system.ts';
import { readAll, startChild } from '../platform/process.ts';
import { isJobId } from '../platform/topology.ts';
import { withRevokedDigest } from '../trust/index.ts';
import { CliFixture, sandbusProgram } from './cli-process.ts';

let cli: CliFixture;
before(async () => {
  cli = await CliFixture.start();
  await cli.plugin(
    'talk.sh',
    '#!/bin/bash\necho out; echo err >&2; echo kept > out/file.txt; mkdir "out/a b"; : > "out/a b/empty"; exit 3\n',
  );
  await cli.plugin('sleep.sh', '#!/bin/bash\necho sleeping; exec sleep 40\n');
});
after(() => cli.stop());

const linesOf = (bytes: Buffer) => bytes.toString().trimEnd().split('\n');
const objectsOf = (bytes: Buffer) =>
  linesOf(bytes).map((line) => JSON.parse(line) as Record<string, unknown>);

async function submit(...args: string[]): Promise<string> {
  const { stdout, stderr } = await cli.sandbus(['submit', ...args]);
  const jobId = stdout.toString().trim();
  assert.ok(isJobId(jobId), stderr);
  return jobId;
}

describe('a job that ended', () => {
  let jobId: string;
  before(async () => {
    jobId = await submit('talk.sh');
  });

  it('wait exits as the plugin did', async () => {
    const { code, stdout } = await cli.sandbus(['wait', jobId]);
    assert.deepEqual([code, stdout.toString()], [3, 'exited with 3\n']);
  });

  it('logs gives both streams, byte for byte', async () => {
    for (const follow of [[], ['-f']]) {
      const { code, stdout, stderr } = await cli.sandbus(['logs', ...follow, jobId]);
      assert.deepEqual([code, stdout.toString(), stderr], [0, 'out\n', 'err\n']);
    }
  });

  it('logs --json gives pieces with their offsets', async () => {
    const pieces = objectsOf((await cli.sandbus(['logs', '--json', jobId])).stdout);
    const bytes = pieces.map(({ stream, offset, bytes }) => [
      stream,
      offset,
      Buffer.from(String(bytes), 'base64').toString(),
    ]);
    assert.deepEqual(bytes.toSorted(), [
      ['stderr', 0, 'err\n'],
      ['stdout', 0, 'out\n'],
    ]);
  });

  it('ps hides it, and shows it with --all', async () => {
    const shown = await cli.sandbus(['ps', '--json']);
    assert.ok(!shown.stdout.toString().includes(jobId));
    const all = objectsOf((await cli.sandbus(['ps', '--all', '--json'])).stdout);
    assert.equal(all.find((job) => job.jobId === jobId)?.state, 'finished');
    // More than one answer of the audit service may have.
    const many = objectsOf((await cli.sandbus(['ps', '--all', '--json', '--limit', '1000000'])).stdout);
    assert.deepEqual(many, all);
    assert.equal(objectsOf((await cli.sandbus(['ps', '--all', '--json', '--limit', '1'])).stdout).length, 1);
  });

  it('show has the whole record: signer, route, steps, sandbox, accounts, artifact, place in the ledger', async () => {
    await eventually('a checkpoint covers its end', async () => {
      const last = (await cli.system.client.result(jobId))?.record.sequence ?? -1;
      return (await cli.system.client.standing(last)).covering !== null;
    });
    const { code, stdout } = await cli.sandbus(['show', jobId]);
    assert.equal(code, 0);
    const text = stdout.toString();
    const kinds = [...text.matchAll(/^ +\d+ {2}\S+ \S+ {2}(\S+)/gm)].map(([, kind]) => kind);
    assert.deepEqual(kinds, ['submitted', 'verified', 'routed', 'started', 'finished']);
    for (const line of [
      /^job \S+ of tenant acme: exited with 3$/m,
      /^plugin {5}talk\.sh, \d+ B, SHA-256 [0-9a-f]{64}$/m,
      /^signed by {2}tester, key [0-9a-f]{64}$/m,
      /^route {6}bash\.cpu, decided by its content$/m,
      /^because {4}statement: bash; extension: \.sh; content: #!\/bin\/bash$/m,
      /^limits {5}256 MiB, 1 CPU, /m,
      /^result {5}exited with 3$/m,
      /^sandbox {4}6 namespaces, cgroup \w+, .*, network none, set up in /m,
      /^filter {5}[0-9a-f]{64}$/m,
      /^calls {6}(\d+ of \d+ kinds: \w+ \d+|not counted: \w+)/m,
      /^refused {4}no system call$/m,
      /^executed {3}(.*\/bash|not recorded)/m,
      /^GPU {8}(none granted, none opened|access not recorded)/m,
      /^artifact {3}file\.txt, 5 B, SHA-256 [0-9a-f]{64}$/m,
      /^ledger {5}sequences( \d+){5}$/m,
      /^last leaf {2}[0-9a-f]{64}$/m,
      /^checkpoint \d+ records, .* root [0-9a-f]{64}$/m,
      /^trace {6}[0-9a-f]{32}, \d+ spans/m,
    ])
      assert.match(text, line);
  });

  it('artifacts lists the files that it left', async () => {
    const { code, stdout } = await cli.sandbus(['artifacts', jobId]);
    assert.equal(code, 0);
    assert.match(
      stdout.toString(),
      /^FILE +SIZE +SHA-256\na b\/empty +0 B +[0-9a-f]{64}\nfile\.txt +5 B +[0-9a-f]{64}\n$/,
    );
  });

  it('artifacts --out fetches them, again only what is not there, and overwrites nothing', async () => {
    const out = join(cli.folder, 'fetched');
    const fetch = () => cli.sandbus(['artifacts', jobId, '--out', 'fetched', '--json']);
    const first = await fetch();
    assert.deepEqual(
      objectsOf(first.stdout).map(({ name, path }) => [name, path]),
      [
        ['a b/empty', 'fetched/a b/empty'],
        ['file.txt', 'fetched/file.txt'],
      ],
    );
    await rm(join(out, 'a b'), { recursive: true });
    assert.equal((await fetch()).code, 0);
    assert.deepEqual(
      [await readFile(join(out, 'a b/empty'), 'utf8'), await readFile(join(out, 'file.txt'), 'utf8')],
      ['', 'kept\n'],
    );
    await writeFile(join(out, 'file.txt'), 'mine\n');
    const refusal = await fetch();
    assert.equal(refusal.code, 2);
    assert.match(refusal.stderr, /fetched\/file\.txt: it is there already, and is not overwritten/);
    assert.equal(await readFile(join(out, 'file.txt'), 'utf8'), 'mine\n');
  });

  it('artifacts --out follows no link out of the folder', async () => {
    const [outside, out] = [join(cli.folder, 'outside'), join(cli.folder, 'linking')];
    await Promise.all([mkdir(outside), mkdir(out)]);
    await symlink(outside, join(out, 'a b'));
    const { code, stderr } = await cli.sandbus(['artifacts', jobId, '--out', 'linking']);
    assert.equal(code, 2);
    assert.match(stderr, /linking\/a b is there already, and is no folder/);
    assert.deepEqual(await readdir(outside), []);
  });

  it('show --trace draws it', async () => {
    const { stdout } = await cli.sandbus(['show', jobId, '--trace']);
    assert.match(stdout.toString(), /^└ verify +verifier .* [━╸╺]+$|^├ verify +verifier .* [━╸╺]+$/m);
    assert.match(stdout.toString(), / plugin +executor .* error: nonzero_exit$/m);
  });

  it('cancel says that it has ended already', async () => {
    const { code, stdout } = await cli.sandbus(['cancel', jobId]);
    assert.equal(code, 0);
    assert.match(stdout.toString(), /has ended already: exited/);
  });

  it('audit list and show read the ledger', async () => {
    const records = objectsOf((await cli.sandbus(['audit', 'list', '--job', jobId, '--json'])).stdout);
    assert.deepEqual(
      records.map(({ kind }) => kind),
      ['submitted', 'verified', 'routed', 'started', 'finished'],
    );
    const last = records.at(-1);
    const shown: Record<string, unknown> = JSON.parse(
      (await cli.sandbus(['audit', 'show', String(last?.tenantSequence)])).stdout.toString(),
    );
    assert.deepEqual(shown, last);
    assert.equal((shown.event as { name: string }).name, 'JobFinished');
  });
});

it('cancel ends a running job, and wait says so', async () => {
  const jobId = await submit('sleep.sh', '--wall', '50s');
  const logs = await cli.spawn(['logs', '-f', jobId]);
  await new Promise((resolve) => logs.stdout?.once('data', resolve));
  const [job] = objectsOf((await cli.sandbus(['ps', '--json'])).stdout);
  assert.deepEqual([job?.jobId, job?.state], [jobId, 'started']);
  const early = await cli.sandbus(['artifacts', jobId]);
  assert.equal(early.code, 1);
  assert.match(early.stderr, /has not ended yet; `sandbus wait /);
  const cancelled = await cli.sandbus(['cancel', jobId, '--reason', 'a test']);
  assert.equal(cancelled.code, 0, cancelled.stderr);
  const waited = await cli.sandbus(['wait', jobId]);
  assert.equal(waited.code, 130);
  assert.equal((await logs.exited).code, 0);
  const request = objectsOf((await cli.sandbus(['audit', 'list', '--job', jobId, '--json'])).stdout);
  const event = request.find(({ kind }) => kind === 'cancel-requested')?.event as { reason: string };
  assert.equal(event.reason, 'a test');
});

it('a job that a revocation ended says so to whoever waits, and to whoever looks later', async () => {
  const source = '#!/bin/bash\necho sleeping; exec sleep 40 # until it is revoked\n';
  const jobId = await submit(await cli.plugin('doomed.sh', source), '--wall', '50s');
  const logs = await cli.spawn(['logs', '-f', jobId]);
  await new Promise((resolve) => logs.stdout?.once('data', resolve));
  await cli.system.publishTrust(withRevokedDigest(cli.system.trust, sha256(Buffer.from(source))));
  const why = /cancelled while it ran: .*revoked in trust store version \d+\. Sign the plugin with a key/;
  const waited = await cli.sandbus(['wait', jobId]);
  assert.equal(waited.code, 130);
  assert.match(waited.stdout.toString(), why);
  const shown = (await cli.sandbus(['show', jobId])).stdout.toString();
  assert.match(shown, why);
  assert.match(shown, /finished .* cancelled: revoked$/m);
  await logs.exited;
});

it('audit tail shows what comes from now on, until it is stopped', async () => {
  const tail = await cli.spawn(['audit', 'tail', '--json']);
  let text = '';
  const ended = new Promise<void>((resolve) => {
    tail.stdout?.on('data', (chunk: Buffer) => {
      text += chunk.toString();
      if (text.includes('"kind":"finished"')) resolve();
    });
  });
  // It begins a moment after its process has: what is submitted before that it need not show.
  const submitting = setInterval(
    () => void cli.system.run('tick.sh', '#!/bin/bash\n').catch(() => undefined),
    1000,
  );
  await ended.finally(() => clearInterval(submitting));
  tail.kill('SIGINT');
  assert.equal((await tail.exited).code, 0);
});

const refused: readonly (readonly [args: readonly string[], code: number, stderr: RegExp])[] = [
  [['wait', '0198c2f0-0000-7000-8000-000000000000'], 4, /there is no job 0198c2f0/],
  [['artifacts', '0198c2f0-0000-7000-8000-000000000000'], 4, /there is no job 0198c2f0/],
  [['show', 'nonsense'], 2, /job id nonsense: must be a UUIDv7/],
  [
    ['audit', 'show', '99999'],
    4,
    /there is no record of the number 99999 of tenant acme: `sandbus audit list` has the numbers/,
  ],
  [['audit', 'show', '-1'], 2, /^sandbus: record number -1: must be a whole number, 0 or more$/m],
  [['dead-letters', 'show', '-1'], 2, /^sandbus: record number -1: must be a whole number, 0 or more$/m],
  [['dead-letters', 'show', '99999'], 4, /the record of the number 99999 of tenant acme is no dead letter/],
  [['dead-letters', 'show', '0', '--all-tenants'], 4, /the record of ledger sequence 0 is no dead letter/],
  [['submit', 'nosuch.sh'], 2, /cannot read nosuch\.sh/],
  [['submit', 'talk.sh', '--env', 'A'], 2, /--env: pair A: must be NAME=VALUE/],
  [['submit', 'talk.sh', '--memory', '1M', '--memory', '2M'], 2, /--memory is given twice/],
  [['nosuch'], 2, /unknown command 'nosuch'/],
  [['help', 'nosuch'], 2, /unknown command 'nosuch'/],
  [['trust', 'nosuch', '--help'], 2, /unknown command 'nosuch'/],
];
describe('what cannot be done is said, with an exit code', () => {
  for (const [args, code, message] of refused)
    it(args.join(' '), async () => {
      const result = await cli.sandbus(args);
      assert.equal(result.code, code);
      assert.match(result.stderr, message);
      assert.equal(result.stdout.length, 0);
    });

  it('with --json as an object', async () => {
    const { stderr } = await cli.sandbus(['submit', '--json', 'nosuch.sh']);
    assert.equal((JSON.parse(stderr) as { error: { code: string } }).error.code, 'USAGE');
  });

  it('an unknown variable of ours is not overlooked', async () => {
    const { code, stderr } = await cli.sandbus(['ps'], undefined, { SANDBUS_TENNANT: 'acme' });
    assert.equal(code, 2);
    assert.match(stderr, /SANDBUS_TENNANT: unknown variable/);
  });
});

it('doctor finds everything beside a running system', async () => {
  const { stdout } = await cli.sandbus(['doctor', '--json']);
  const checks = objectsOf(stdout);
  for (const name of ['NATS', 'services', 'trust store', 'policy', 'runtime: node'])
    assert.equal(checks.find((check) => check.name === name)?.ok, true, name);
});

it('works by a link, as npm makes one, from any directory', async () => {
  const link = join(cli.folder, 'linked');
  await symlink(sandbusProgram, link);
  const child = await startChild(link, ['--version'], {
    env: { PATH: '/usr/bin:/bin' },
    cwd: '/',
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [stdout, { code }] = await Promise.all([readAll(child.stdout), child.exited]);
  assert.equal(code, 0);
  assert.match(stdout.toString(), /^\d+\.\d+\.\d+\n$/);
});
