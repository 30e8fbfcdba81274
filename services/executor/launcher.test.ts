/** The adapter against the real launcher, and against programs that are none. */
import assert from 'node:assert/strict';
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { installation } from '../platform/config.ts';
import { DEFAULT_LIMITS } from '../trust/index.ts';
import { digest, eventually, marked } from './fixture.ts';
import type { LauncherEnd, LauncherStreams } from './launcher.ts';
import { Launcher } from './launcher.ts';
import type { LauncherJob } from './launcher-options.ts';

let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sandbus-launcher-'));
});
after(async () => {
  await launcher.close();
  await rm(folder, { recursive: true });
});

const bash = { runtime: 'bash', path: '/usr/bin/bash', version: '', bind: null } as const;
const launcher = new Launcher(installation.launcher);
let count = 0;

async function jobOf(source: string, changes: Partial<LauncherJob> = {}): Promise<LauncherJob> {
  const own = join(folder, String(++count));
  await mkdir(join(own, 'out'), { recursive: true });
  await writeFile(join(own, 'plugin'), source);
  return {
    limits: DEFAULT_LIMITS,
    plugin: { path: join(own, 'plugin'), name: 'a.sh', sha256: digest(Buffer.from(source)) },
    interpreter: bash,
    args: [],
    env: { PATH: '/usr/bin' },
    stdinPath: null,
    inputs: [],
    collectFolder: join(own, 'out'),
    gpu: null,
    network: 'none',
    ...changes,
  };
}

const quiet: LauncherStreams = { onOutput: async () => undefined };
const never = new AbortController().signal;
const outcomeOf = (end: LauncherEnd) => (end.kind === 'result' ? end.result.outcome : end.message);

describe('the real launcher', () => {
  test('says what this host gives and what its filter is', async () => {
    const [host, syscalls] = await Promise.all([launcher.checkHost(), launcher.syscalls()]);
    assert.equal(host.filterDigest, syscalls.digest);
    assert.equal(syscalls.names.length, 215);
    assert.ok(host.controls.every(({ name }) => name !== ''));
  });

  test('output that nobody takes slows the job down, and nothing of it is lost', async () => {
    let bytes = 0;
    const onOutput: LauncherStreams['onOutput'] = async (_, chunk) => {
      bytes += chunk.length;
      await new Promise((resolve) => setTimeout(resolve, 1));
    };
    const limits = { ...DEFAULT_LIMITS, outputBytes: 8_000_000 };
    const job = await jobOf('head -c 5000000 /dev/zero', { limits });
    const end = await launcher.run(job, { onOutput }, never);
    assert.equal(outcomeOf(end), 'exited');
    assert.deepEqual([bytes, end.stdout.bytes, end.stdout.head.length], [5_000_000, 5_000_000, 65_536]);
    assert.equal(end.kind === 'result' && end.result.stdout.sha256, end.stdout.sha256);
  });

  test('a large input that the plugin does not read is no fault', async () => {
    const input = join(folder, 'input');
    await writeFile(input, Buffer.alloc(3_000_000));
    const end = await launcher.run(await jobOf('exit 3', { stdinPath: input }), quiet, never);
    assert.equal(end.kind === 'result' && end.result.exitCode, 3);
  });

  test('a plugin that is not the one that was named does not run', async () => {
    const job = await jobOf('echo ran');
    const end = await launcher.run(
      { ...job, plugin: { ...job.plugin, sha256: '0'.repeat(64) } },
      quiet,
      never,
    );
    assert.ok(end.kind === 'result' && end.stdout.bytes === 0);
    assert.deepEqual([end.result.outcome, end.result.error?.step], ['setup-failed', 'plugin-digest']);
  });

  test('an abort ends the job at once, with a result', async () => {
    const stop = new AbortController();
    const onOutput = async () => stop.abort();
    const end = await launcher.run(await jobOf('echo up; sleep 100'), { onOutput }, stop.signal);
    assert.equal(outcomeOf(end), 'cancelled');
  });

  test('jobs share one process, and end in their own order', async () => {
    const started = await Promise.all([jobOf('sleep 0.3; echo slow'), jobOf('echo quick')]);
    const order: string[] = [];
    const onOutput: LauncherStreams['onOutput'] = async (_, bytes) =>
      void order.push(Buffer.from(bytes).toString());
    const ends = await Promise.all(started.map((job) => launcher.run(job, { onOutput }, never)));
    assert.deepEqual(ends.map(outcomeOf), ['exited', 'exited']);
    assert.deepEqual(order, ['quick\n', 'slow\n']);
    assert.equal((await launchers()).length, 1);
  });

  test('one job whose output nobody takes holds up no other', async () => {
    const opened = Promise.withResolvers<void>();
    const stuck = launcher.run(
      await jobOf('head -c 3000000 /dev/zero', { limits: { ...DEFAULT_LIMITS, outputBytes: 4_000_000 } }),
      { onOutput: () => opened.promise },
      never,
    );
    assert.equal(outcomeOf(await launcher.run(await jobOf('echo well'), quiet, never)), 'exited');
    opened.resolve();
    const end = await stuck;
    assert.deepEqual([outcomeOf(end), end.stdout.bytes], ['exited', 3_000_000]);
  });

  test('input and output are the bytes that they are', async () => {
    const bytes = Buffer.from(Array.from({ length: 300_000 }, (_, at) => (at * 7) % 256));
    const input = join(folder, 'bytes');
    await writeFile(input, bytes);
    const end = await launcher.run(await jobOf('cat', { stdinPath: input }), quiet, never);
    assert.deepEqual([end.stdout.bytes, end.stdout.sha256], [bytes.length, digest(bytes)]);
  });

  test('a taker that fails ends its job, and is the fault of the run', async () => {
    const onOutput = async () => Promise.reject(new Error('the bus is full'));
    const run = launcher.run(await jobOf('echo up; sleep 100'), { onOutput }, never);
    await assert.rejects(run, /the bus is full/);
  });

  test('words that the launcher refuses: nothing ran, and it says why', async () => {
    const end = await launcher.run(await jobOf('', { collectFolder: '' }), quiet, never);
    assert.deepEqual([end.kind, end.kind === 'silent' && end.mayHaveRun], ['silent', false]);
    assert.match(outcomeOf(end), /^options: --collect : the value is empty/);
  });

  test('its death is told from a failed set-up, its job dies with it, and the next job has a new one', async () => {
    const mark = `SANDBUS_TEST_MARK=${process.pid}-${count}`;
    const onOutput = async () => {
      for (const pid of await launchers()) process.kill(pid, 'SIGKILL');
    };
    const job = await jobOf('echo up; sleep 100', { env: { PATH: '/usr/bin', SANDBUS_TEST_MARK: mark } });
    const end = await launcher.run(job, { onOutput }, never);
    assert.deepEqual([end.kind, end.kind === 'silent' && end.mayHaveRun], ['silent', true]);
    assert.match(outcomeOf(end), /by SIGKILL, without a result/);
    await eventually('no process', async () => ((await marked(mark)).length === 0 ? true : null));
    const next = await Promise.all([1, 2].map(async () => launcher.run(await jobOf('true'), quiet, never)));
    assert.deepEqual(next.map(outcomeOf), ['exited', 'exited']);
    assert.equal((await launchers()).length, 1);
  });

  test('closing it ends what runs', async () => {
    const own = new Launcher(installation.launcher);
    const running = own.run(await jobOf('echo up; sleep 100'), { onOutput: () => own.close() }, never);
    assert.match(outcomeOf(await running), /ended with code 0, without a result: the executor closed it/);
  });
});

describe('a program that is no launcher', () => {
  const script = async (text: string) => {
    const path = join(folder, `launcher-${++count}`);
    await writeFile(path, `#!/bin/sh\n${text}\n`);
    await chmod(path, 0o755);
    return new Launcher(path);
  };
  const hello = String.raw`printf '\10\0\0\0\20\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\1\0\0\0'`;
  const result = (text: string) => `printf '${String.raw`\2\0\0\0\24\0\0\0\1\0\0\0\0\0\0\0`}${text}'`;
  const cases: [what: string, text: string | null, mayHaveRun: boolean, message: RegExp][] = [
    ['absent', null, false, /cannot start .*ENOENT/],
    [
      'that fails before it serves',
      'echo no host >&2; exit 125',
      false,
      /code 125, without a result: no host/,
    ],
    ['that says nothing', 'exit 0', false, /code 0, without a result/],
    ['that says nonsense', 'echo nonsense, and more', false, /no frame \(a launcher sends no frame of type/],
    [
      'that speaks another version',
      hello.replace(String.raw`\1\0\0\0\1`, String.raw`\2\0\0\0\1`),
      false,
      /version 2/,
    ],
    ['that ends after its hello', `${hello}; head -c 20 >/dev/null`, true, /code 0, without a result/],
    [
      'that says nonsense later',
      `${hello}; head -c 20 >/dev/null; echo nonsense, and more`,
      true,
      /no frame/,
    ],
    [
      'whose result says too little',
      `${hello}; head -c 20 >/dev/null; ${result('{}')}; cat >/dev/null`,
      true,
      /cannot be read .*outcome/,
    ],
    [
      'that never stops talking',
      `${hello}; head -c 20 >/dev/null; cat /dev/zero`,
      true,
      /no frame of type 0/,
    ],
  ];
  for (const [what, text, mayHaveRun, message] of cases)
    test(what, async () => {
      const odd = text === null ? new Launcher(join(folder, 'absent')) : await script(text);
      const end = await odd.run(await jobOf(''), quiet, never);
      assert.deepEqual([end.kind, end.kind === 'silent' && end.mayHaveRun], ['silent', mayHaveRun]);
      assert.match(outcomeOf(end), message);
      await odd.close();
    });

  test('is refused at the start, with what it said', async () => {
    const odd = await script('echo no such command >&2; exit 2');
    await assert.rejects(odd.checkHost(), /check-host --json: .*no such command/s);
  });
});

/** Process ids of this process's launchers. */
async function launchers(): Promise<number[]> {
  const children = await readFile(`/proc/self/task/${process.pid}/children`, 'utf8');
  const found: number[] = [];
  for (const pid of children
    .trim()
    .split(' ')
    .filter((word) => word !== '')) {
    const words = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    if (words.startsWith(`${installation.launcher}\0serve\0`)) found.push(Number(pid));
  }
  return found;
}
