/** The adapter against the real launcher, and against programs that are none. */
import assert from 'node:assert/strict';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { installation } from '../platform/config.ts';
import { DEFAULT_LIMITS } from '../trust/index.ts';
import { digest, eventually } from './fixture.ts';
import type { LauncherEnd, LauncherStreams } from './launcher.ts';
import { Launcher } from './launcher.ts';
import type { LauncherJob } from './launcher-options.ts';

let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sandbus-launcher-'));
});
after(() => rm(folder, { recursive: true }));

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
    inputs: [],
    collectFolder: join(own, 'out'),
    gpu: null,
    network: 'none',
    ...changes,
  };
}

const quiet: LauncherStreams = { stdinPath: null, onOutput: async () => undefined };
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
    const end = await launcher.run(job, { stdinPath: null, onOutput }, never);
    assert.equal(outcomeOf(end), 'exited');
    assert.deepEqual([bytes, end.stdout.bytes, end.stdout.head.length], [5_000_000, 5_000_000, 65_536]);
    assert.equal(end.kind === 'result' && end.result.stdout.sha256, end.stdout.sha256);
  });

  test('a large input that the plugin does not read is no fault', async () => {
    const input = join(folder, 'input');
    await writeFile(input, Buffer.alloc(3_000_000));
    const end = await launcher.run(await jobOf('exit 3'), { ...quiet, stdinPath: input }, never);
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
    const end = await launcher.run(await jobOf('echo up; sleep 100'), { ...quiet, onOutput }, stop.signal);
    assert.equal(outcomeOf(end), 'cancelled');
  });

  test('its death is told from a failed set-up, and its job dies with it', async () => {
    const mark = `SANDBUS_TEST_MARK=${process.pid}-${count}`;
    const onOutput = async () => {
      for (const pid of await launchers(folder)) process.kill(pid, 'SIGKILL');
    };
    const job = await jobOf('echo up; sleep 100', { env: { PATH: '/usr/bin', SANDBUS_TEST_MARK: mark } });
    const end = await launcher.run(job, { ...quiet, onOutput }, never);
    assert.deepEqual([end.kind, end.kind === 'silent' && end.mayHaveRun], ['silent', true]);
    assert.match(outcomeOf(end), /by SIGKILL, without a result/);
    await eventually('no process', async () => ((await marked(mark)).length === 0 ? true : null));
  });
});

describe('a program that is no launcher', () => {
  const script = async (text: string) => {
    const path = join(folder, `launcher-${++count}`);
    await writeFile(path, `#!/bin/sh\n${text}\n`);
    await chmod(path, 0o755);
    return new Launcher(path);
  };
  const cases: [what: string, text: string | null, mayHaveRun: boolean, message: RegExp][] = [
    ['absent', null, false, /cannot start .*ENOENT/],
    ['that fails before it starts anything', 'exit 125', false, /code 125, without a result/],
    ['that says nothing', 'exit 0', true, /code 0, without a result/],
    ['that says nonsense', 'echo nonsense >&3', true, /cannot be read \(no JSON/],
    ['that says too little', 'echo \'{"version":1}\' >&3', true, /outcome/],
    ['that never stops talking', 'head -c 9000000 /dev/zero >&3', true, /cannot be read/],
  ];
  for (const [what, text, mayHaveRun, message] of cases)
    test(what, async () => {
      const odd = text === null ? new Launcher(join(folder, 'absent')) : await script(text);
      const end = await odd.run(await jobOf(''), quiet, never);
      assert.deepEqual([end.kind, end.kind === 'silent' && end.mayHaveRun], ['silent', mayHaveRun]);
      assert.match(outcomeOf(end), message);
    });

  test('is refused at the start, with what it said', async () => {
    const odd = await script('echo no such command >&2; exit 2');
    await assert.rejects(odd.checkHost(), /check-host --json: .*no such command/s);
  });
});

/** Process ids of our own launchers: those with a file of this folder in their arguments. */
async function launchers(needle: string): Promise<number[]> {
  const found: number[] = [];
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    const words = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    if (words.startsWith(installation.launcher) && words.includes(needle)) found.push(Number(pid));
  }
  return found;
}

async function marked(mark: string): Promise<string[]> {
  const found: string[] = [];
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    const environment = await readFile(`/proc/${pid}/environ`, 'latin1').catch(() => '');
    if (environment.includes(mark)) found.push(pid);
  }
  return found;
}
