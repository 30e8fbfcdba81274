// The example plugins themselves, run bare: whatever differs later, the sandbox did.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import {
  type BuiltPlugin,
  buildPlugins,
  type ReadyPlugin,
  type Runtime,
  scriptPlugin,
} from './plugins/build.ts';

const interpreters: Record<Runtime, string[]> = {
  native: [],
  python: ['python3'],
  node: [process.execPath],
  ruby: ['ruby'],
  bash: ['bash'],
};

const env = { PATH: '/usr/local/bin:/usr/bin:/bin', HOME: '/nonexistent', LANG: 'C.UTF-8' };

let directory: string;
let plugins: BuiltPlugin[];
before(async () => {
  directory = mkdtempSync(join(tmpdir(), 'sandbus-plugins-'));
  plugins = await buildPlugins(join(directory, 'built'));
});
after(() => rmSync(directory, { recursive: true, force: true }));

/** Copies the plugin away from this repository first: the sandbox too gives it nothing but its own file. */
function runBare(plugin: ReadyPlugin, args: string[], input: string | Buffer = '') {
  const cwd = mkdtempSync(join(directory, 'job-'));
  const copy = join(cwd, basename(plugin.file));
  cpSync(plugin.file, copy);
  const [program = '', ...rest] = [...interpreters[plugin.runtime], copy, ...args];
  const result = spawnSync(program, rest, { cwd, env, input, timeout: 30_000, maxBuffer: 1 << 24 });
  return { ...result, cwd, text: result.stdout.toString(), errors: result.stderr.toString() };
}

const greetings: Record<string, RegExp> = {
  'hello-c': /^hello from C \(standard 201710, compiler \d+\.\d+/,
  'hello-cpp': /^hello from C\+\+ \(standard 201703, compiler \d+\.\d+/,
  'hello-go': /^hello from Go 1\.\d+/,
  'hello-rust': /^hello from Rust \(rustc 1\.\d+/,
  'hello.py': /^hello from Python 3\.\d+\.\d+$/,
  'hello.js': /^hello from JavaScript \(script\) Node\.js 2\d\.\d+/,
  'hello.mjs': /^hello from JavaScript \(module\) Node\.js 2\d\.\d+/,
  'hello.cjs': /^hello from JavaScript \(CommonJS\) Node\.js 2\d\.\d+/,
  'hello.ts': /^hello from TypeScript Node\.js 2\d\.\d+/,
  'hello.rb': /^hello from Ruby [23]\.\d+\.\d+$/,
  'hello.sh': /^hello from Bash 5\.\d+\.\d+$/,
};

describe('hello plugins say the same in every language', () => {
  for (const [name, greeting] of Object.entries(greetings)) {
    it(name, (test) => {
      const plugin = plugins.find((candidate) => candidate.name === name);
      assert.ok(plugin !== undefined);
      if ('skipped' in plugin) {
        assert.match(plugin.skipped, /is not installed$/);
        return test.skip(plugin.skipped);
      }
      const { status, text, errors, cwd } = runBare(
        plugin,
        ['one', 'two words'],
        'first line\nsecond line\n',
      );
      const [said = '', ...lines] = text.split('\n');
      assert.match(said, greeting);
      assert.deepEqual(lines, [
        'argument: one',
        'argument: two words',
        'standard input: first line',
        `directory: ${cwd}`,
        'primes below 1000: 168',
        'wrote: out/hello.txt',
        '',
      ]);
      assert.equal(readFileSync(join(cwd, 'out/hello.txt'), 'utf8'), `${said}\n`);
      assert.deepEqual({ status, errors }, { status: 0, errors: '' });
      assert.match(runBare(plugin, []).text, /^standard input: \(empty\)$/m);
    });
  }
});

describe('behaviour plugins', () => {
  it('echo-stdin gives back every byte', () => {
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, value) => value));
    assert.deepEqual(runBare(scriptPlugin('echo-stdin.sh'), [], bytes).stdout, bytes);
  });

  it('big-output writes its pattern, to either stream', () => {
    const pattern = Buffer.from(Array.from({ length: 200_000 }, (_, position) => position % 251));
    const plugin = scriptPlugin('big-output.py');
    assert.deepEqual(runBare(plugin, ['200000']).stdout, pattern);
    assert.deepEqual(runBare(plugin, ['200000', 'stderr']).stderr, pattern);
  });

  it('exit-code ends as it is told', () => {
    const plugin = scriptPlugin('exit-code.sh');
    assert.equal(runBare(plugin, ['7']).status, 7);
    assert.equal(runBare(plugin, ['TERM']).signal, 'SIGTERM');
  });

  it('canary leaves its traces', () => {
    const elsewhere = join(directory, 'elsewhere', 'canary');
    const { cwd } = runBare(scriptPlugin('canary.sh'), [elsewhere]);
    for (const file of [join(cwd, 'out/canary.txt'), elsewhere]) {
      assert.equal(readFileSync(file, 'utf8'), 'canary ran\n');
    }
  });

  it('env-dump prints the environment it was given', () => {
    const { text } = runBare(scriptPlugin('env-dump.py'), []);
    assert.equal(text, `HOME=${env.HOME}\nLANG=${env.LANG}\nPATH=${env.PATH}\n`);
  });

  it('denied reports a call that is not refused', () => {
    const { status, text } = runBare(scriptPlugin('denied.py'), ['ptrace']);
    assert.equal(text, 'ptrace: ESRCH\n');
    assert.equal(status, 1);
  });

  it('memory-hog and fork-bomb exit with a failure when nothing stops them', () => {
    const hog = runBare(scriptPlugin('memory-hog.py'), ['64']);
    assert.deepEqual([hog.status, hog.text], [3, 'holding 32 MiB\nholding 64 MiB\nnothing stopped me\n']);
    const bomb = runBare(scriptPlugin('fork-bomb.py'), ['20']);
    assert.deepEqual([bomb.status, bomb.text], [1, 'children: 20, refused: None\n']);
  });
});

it('a second build compiles nothing', async () => {
  const built = plugins.filter(
    (plugin): plugin is ReadyPlugin => plugin.runtime === 'native' && 'file' in plugin,
  );
  const times = () => built.map((plugin) => statSync(plugin.file).mtimeMs);
  const before = times();
  assert.deepEqual(await buildPlugins(join(directory, 'built')), plugins);
  assert.deepEqual(times(), before);
});
