/** `sandbus run` against the whole system: it must be indistinguishable from the program itself. */
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { PassThrough } from 'node:stream';
import { after, before, describe, it } from 'node:test';
import { scriptPlugin } from '../../test/plugins/build.ts';
import { eventually } from '../../test/with-nats.ts';
import { uuidV7 } from '../client/ids.ts';
import type { Child } from '../platform/process.ts';
import { readAll } from '../platform/process.ts';
import { CliFixture } from './cli-process.ts';
import { toRequest } from './job-options.ts';
import { runJob } from './running.ts';

let cli: CliFixture;
before(async () => {
  cli = await CliFixture.start();
});
after(() => cli.stop());

async function behaviour(name: string): Promise<string> {
  return cli.plugin(basename(name), await readFile(scriptPlugin(name).file));
}

const allBytes = Buffer.from(Array.from({ length: 200_000 }, (_, index) => (index * 7) % 256));

interface Case {
  readonly name: string;
  readonly plugin: string;
  readonly options?: readonly string[];
  readonly args?: readonly string[];
  readonly input?: Uint8Array;
  readonly code: number;
  readonly stdout?: string | Uint8Array;
  readonly stderr?: RegExp;
}

const nothing = /^$/;
const cases: readonly Case[] = [
  { name: 'exit code 0', plugin: 'exit-code.sh', code: 0, stderr: nothing },
  { name: 'exit code 7', plugin: 'exit-code.sh', args: ['7'], code: 7, stderr: nothing },
  { name: 'exit code 255', plugin: 'exit-code.sh', args: ['255'], code: 255, stderr: nothing },
  {
    name: 'SIGTERM',
    plugin: 'exit-code.sh',
    args: ['TERM'],
    code: 143,
    stderr: /ended by signal 15 \(SIGTERM\)/,
  },
  {
    name: 'every byte value, in and out',
    plugin: 'echo-stdin.sh',
    input: allBytes,
    code: 0,
    stdout: allBytes,
    stderr: nothing,
  },
  { name: 'empty standard input', plugin: 'echo-stdin.sh', code: 0, stdout: '', stderr: nothing },
  {
    name: 'standard input larger than a message',
    plugin: 'echo-stdin.sh',
    options: ['--output-limit', '4M'],
    input: Buffer.concat(Array(8).fill(allBytes)),
    code: 0,
    stdout: Buffer.concat(Array(8).fill(allBytes)),
  },
  {
    name: 'memory limit',
    plugin: 'memory-hog.py',
    options: ['--memory', '64M'],
    code: 137,
    stderr: /exceeded its memory limit/,
  },
  {
    name: 'wall-clock limit',
    plugin: 'sleeper.sh',
    options: ['--wall', '500ms'],
    args: ['100'],
    code: 124,
    stdout: 'sleeping\n',
    stderr: /exceeded its wall-clock limit/,
  },
  {
    name: 'output limit: exactly the kept bytes come',
    plugin: 'big-output.py',
    options: ['--output-limit', '100K'],
    args: ['300000'],
    code: 153,
    stdout: Buffer.from(Array.from({ length: 102_400 }, (_, index) => index % 251)),
    stderr: /exceeded its output limit/,
  },
  {
    name: 'more memory than signed',
    plugin: 'exit-code.sh',
    options: ['--memory', '1G'],
    code: 126,
    stdout: '',
    stderr: /LIMIT_EXCEEDED/,
  },
  {
    name: 'GPU not signed',
    plugin: 'exit-code.sh',
    options: ['--gpu'],
    code: 126,
    stderr: /GPU_NOT_SIGNED.*--gpu/,
  },
  {
    name: 'no such file',
    plugin: 'nosuch.sh',
    code: 125,
    stdout: '',
    stderr: /cannot read nosuch\.sh: there is no such file/,
  },
  {
    name: 'a size that is none',
    plugin: 'exit-code.sh',
    options: ['--memory', 'much'],
    code: 125,
    stderr: /--memory: size much: must be 256M/,
  },
  {
    name: 'an unknown option',
    plugin: 'exit-code.sh',
    options: ['--nope'],
    code: 125,
    stdout: '',
    stderr: /unknown option '--nope'/,
  },
];

describe('sandbus run', { concurrency: 3 }, () => {
  before(async () => {
    for (const name of ['exit-code.sh', 'echo-stdin.sh', 'memory-hog.py', 'sleeper.sh', 'big-output.py'])
      await behaviour(name);
  });

  for (const { name, plugin: file, options = [], args = [], input, code, stdout, stderr } of cases)
    it(`${name}: ${code}`, async () => {
      const result = await cli.sandbus(['run', ...options, file, '--', ...args], input);
      assert.equal(result.code, code, result.stderr);
      if (stdout !== undefined)
        assert.ok(result.stdout.equals(Buffer.from(stdout)), 'standard output differs');
      if (stderr !== undefined) assert.match(result.stderr, stderr);
    });

  it('arguments, environment, input files and both streams arrive', async () => {
    const source = '#!/bin/bash\nprintf "%s|" "$@" "$GREETING"; cat data/in.txt; echo bad >&2; exit 3\n';
    await writeFile(join(cli.folder, 'in.txt'), 'input\n');
    const file = await cli.plugin('everything.sh', source);
    const options = ['--env', 'GREETING=hi = there', '--input', 'data/in.txt=in.txt'];
    const result = await cli.sandbus(['run', ...options, file, '--', 'a b', '--json', '']);
    assert.deepEqual(
      { ...result, stdout: result.stdout.toString() },
      { code: 3, stdout: 'a b|--json||hi = there|input\n', stderr: 'bad\n' },
    );
  });

  it('a plugin larger than a message is uploaded', async () => {
    const file = await cli.plugin('large.sh', `#!/bin/bash\necho large; exit 0\n${'#'.repeat(1_500_000)}\n`);
    const result = await cli.sandbus(['run', file]);
    assert.deepEqual([result.code, result.stdout.toString(), result.stderr], [0, 'large\n', '']);
  });

  it('an unsigned plugin is rejected, and the sentence says what to do', async () => {
    const result = await cli.sandbus([
      'run',
      await cli.plugin('unsigned.sh', '#!/bin/bash\necho ran\n', false),
    ]);
    assert.deepEqual([result.code, result.stdout.toString()], [126, '']);
    assert.match(result.stderr, /rejected by the verifier: UNSIGNED: .*sandbus sign/);
  });

  it('with --json the result is one object, and the exit code stays', async () => {
    const result = await cli.sandbus(['run', '--json', 'exit-code.sh', '--', '7']);
    const [line = '', rest] = result.stdout.toString().split('\n');
    const { outcome, exitCode, denied, stdout } = JSON.parse(line) as Record<string, unknown>;
    assert.deepEqual([result.code, outcome, exitCode, denied, rest], [7, 'exited', 7, 0, '']);
    assert.equal((stdout as { text: string }).text, '');
  });

  it('an id that is given again shows that job, runs nothing, and says so', async () => {
    const file = await cli.plugin('once.sh', '#!/bin/bash\necho "$1"\n');
    const options = ['run', '-n', '--job-id', uuidV7(), file, '--'];
    const [first, second] = [await cli.sandbus([...options, 'a']), await cli.sandbus([...options, 'b'])];
    assert.deepEqual(
      [first, second].map(({ code, stdout }) => [code, stdout.toString()]),
      [
        [0, 'a\n'],
        [0, 'a\n'],
      ],
    );
    assert.deepEqual(
      [first.stderr, /submitted before; this changed nothing/.test(second.stderr)],
      ['', true],
    );
  });

  it('without a server it says so', async () => {
    const nowhere = { SANDBUS_NATS_URL: 'nats://127.0.0.1:1' };
    const { code, stderr } = await cli.sandbus(['run', '-n', 'exit-code.sh'], undefined, nowhere);
    assert.equal(code, 125);
    assert.match(stderr, /no NATS server at nats:\/\/127\.0\.0\.1:1.*`sandbus up`/);
  });
});

describe('interrupted', () => {
  const nothingRuns = () =>
    eventually('no job runs any more', async () => {
      const jobs = await cli.system.client.jobs();
      return jobs.every(({ state }) => /^(finished|rejected|cancelled)$/.test(state));
    });

  /** Runs the sleeper and returns when it sleeps. */
  async function startSleeper(): Promise<Child> {
    const child = await cli.spawn(['run', '--wall', '50s', '-n', 'sleeper.sh', '--', '40']);
    await new Promise((resolve) => child.stdout?.once('data', resolve));
    return child;
  }

  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    it(`${signal} cancels the job, and the command ends when it has`, async () => {
      const child = await startSleeper();
      child.kill(signal);
      const [stderr, { code }] = await Promise.all([readAll(child.stderr), child.exited]);
      assert.equal(code, 130, stderr.toString());
      assert.match(stderr.toString(), /cancelled while it ran/);
    });

  it('while standard input is still being read, nothing is submitted', async () => {
    const { client } = cli.system;
    const known = (await client.jobs()).length;
    const request = await toRequest(join(cli.folder, 'echo-stdin.sh'), [], {});
    const running = runJob(client, { ...request, stdin: new PassThrough() }, false);
    process.emit('SIGHUP', 'SIGHUP');
    assert.equal(await running, 130);
    assert.equal((await client.jobs()).length, known);
  });

  it('a job that the bus took while the command was being interrupted is cancelled', async () => {
    const { client, system } = cli.system;
    const request = await toRequest(join(cli.folder, 'sleeper.sh'), ['40'], { wall: 50_000 });
    process.kill(system.pidOf('nats-server'), 'SIGSTOP');
    const running = runJob(client, request, false);
    process.emit('SIGHUP', 'SIGHUP');
    process.kill(system.pidOf('nats-server'), 'SIGCONT');
    assert.equal(await running, 130);
    await nothingRuns();
  });

  it('a reader that has gone cancels the job', async () => {
    const child = await cli.spawn([
      'run',
      '--wall',
      '50s',
      '--output-limit',
      '60M',
      '-n',
      'big-output.py',
      '--',
      '50000000',
    ]);
    child.stdout?.once('data', () => child.stdout?.destroy());
    const [{ code }] = await Promise.all([child.exited, readAll(child.stderr)]);
    assert.equal(code, 141);
    await nothingRuns();
  });
});
