import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { JobRouted } from '../../schemas/generated/events.ts';
import { DEFAULT_LIMITS } from '../trust/index.ts';
import type { LauncherJob } from './launcher-options.ts';
import { jobEnvironment, launcherArguments, refuseStrings } from './launcher-options.ts';

const base: LauncherJob = {
  limits: DEFAULT_LIMITS,
  plugin: { path: '/state/plugin', name: 'a.py', sha256: 'ab' },
  interpreter: null,
  args: ['x', '--result', ''],
  env: { A: 'b=c' },
  stdinPath: null,
  inputs: [{ name: 'd/e', path: '/state/0' }],
  collectFolder: '/state/out',
  gpu: null,
  network: 'none',
};
const python = { runtime: 'python', path: '/opt/py/bin/python3', version: '', bind: '/opt/py' } as const;

/** Values of an option, in order. */
const valuesOf = (args: string[], option: string) =>
  args.slice(0, args.indexOf('--')).flatMap((word, at) => (word === option ? [args[at + 1]] : []));
const programOf = (args: string[]) => args.slice(args.indexOf('--') + 1);

describe('the command line of a job', () => {
  const cases: [option: string, changes: Partial<LauncherJob>, expected: string[]][] = [
    ['--memory', {}, ['268435456']],
    ['--cpus', { limits: { ...DEFAULT_LIMITS, cpuMillis: 1500 } }, ['1.500']],
    ['--wall', { limits: { ...DEFAULT_LIMITS, wallMs: 250 } }, ['0.250']],
    ['--cpu-time', {}, []],
    ['--cpu-time', { limits: { ...DEFAULT_LIMITS, cpuTimeMs: 2000 } }, ['2.000']],
    ['--plugin-sha256', {}, ['ab']],
    ['--env', {}, ['A=b=c']],
    ['--stdin', {}, ['/dev/null']],
    ['--stdin', { stdinPath: '/state/stdin' }, ['/state/stdin']],
    ['--input', {}, ['d/e=/state/0']],
    ['--ro-bind', { interpreter: python }, ['/opt/py']],
    ['--network', { network: 'host' }, ['host']],
    [
      '--device',
      { gpu: { devices: [{ path: '/dev/nvidia0', access: 'rw' }], binds: [], env: {}, source: '' } },
      ['/dev/nvidia0:rw'],
    ],
    [
      '--env',
      { gpu: { devices: [], binds: [], env: { A: 'driver', B: 'driver' }, source: '' } },
      ['A=b=c', 'B=driver'],
    ],
  ];
  for (const [option, changes, expected] of cases)
    test(`${option}: ${expected.join(' ') || 'not given'}`, () =>
      assert.deepEqual(valuesOf(launcherArguments({ ...base, ...changes }), option), expected));

  test('the program comes last, with arguments as they are', () => {
    assert.deepEqual(programOf(launcherArguments(base)), ['/plugin/a.py', 'x', '--result', '']);
    const interpreted = launcherArguments({ ...base, interpreter: python });
    assert.deepEqual(programOf(interpreted), ['/opt/py/bin/python3', '/plugin/a.py', 'x', '--result', '']);
  });
});

const routed = (spec: Partial<JobRouted['spec']>) =>
  ({ jobId: 'the-job', spec: { args: [], env: {}, inputs: [], ...spec } }) as unknown as JobRouted;

test('a job may set any variable but the two that say which job it is', () => {
  const env = { PATH: '/x', OMP_NUM_THREADS: '9', SANDBUS_JOB_ID: 'forged', TRACEPARENT: 'forged' };
  const { PATH, HOME, OMP_NUM_THREADS, GOMAXPROCS, SANDBUS_JOB_ID, TRACEPARENT } = jobEnvironment(
    routed({ env }),
    { ...DEFAULT_LIMITS, cpuMillis: 2500 },
    'parent',
  );
  assert.deepEqual(
    [PATH, HOME, OMP_NUM_THREADS, GOMAXPROCS, SANDBUS_JOB_ID, TRACEPARENT],
    ['/x', '/job', '9', '3', 'the-job', 'parent'],
  );
});

test('a program starts no more threads than its quota has cores for, however many the host has', () => {
  const env = jobEnvironment(routed({}), { ...DEFAULT_LIMITS, cpuMillis: 2500 }, 'parent');
  for (const hint of ['OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS', 'UV_THREADPOOL_SIZE', 'GOMAXPROCS'])
    assert.equal(env[hint], '3', hint);
});

describe('strings that no program can be given', () => {
  const input = (name: string) => ({ name, content: { inline: null, sha256: '', size: 0 } });
  const cases: [what: string, spec: Partial<JobRouted['spec']>, expected: string | null][] = [
    ['nothing odd', { args: ['', 'a'], env: { A: '' }, inputs: [input('a/b')] }, null],
    ['the longest argument', { args: ['x'.repeat(131_071)] }, null],
    ['one byte more', { args: ['x'.repeat(131_072)] }, 'LIMIT_EXCEEDED'],
    ['characters are not bytes', { args: ['ü'.repeat(70_000)] }, 'LIMIT_EXCEEDED'],
    ['many arguments', { args: Array.from({ length: 120_000 }, () => '') }, 'LIMIT_EXCEEDED'],
    [
      'name and value count together',
      { env: { ['K'.repeat(70_000)]: 'v'.repeat(70_000) } },
      'LIMIT_EXCEEDED',
    ],
    ['NUL in an argument', { args: ['\0'] }, 'MALFORMED'],
    ['NUL in a value', { env: { A: '\0' } }, 'MALFORMED'],
    ['no name', { env: { '': 'x' } }, 'MALFORMED'],
    ['= in a name', { env: { 'A=B': 'x' } }, 'MALFORMED'],
    ...['', '/etc/passwd', '../a', 'a/../b', 'a//b', './a', 'a/', 'a=b', 'a\0'].map(
      (name): [string, Partial<JobRouted['spec']>, string] => [
        `input ${JSON.stringify(name)}`,
        { inputs: [input(name)] },
        'MALFORMED',
      ],
    ),
    ['an input twice', { inputs: [input('a'), input('a')] }, 'MALFORMED'],
  ];
  for (const [what, spec, expected] of cases)
    test(`${what}: ${expected ?? 'taken'}`, () =>
      assert.equal(refuseStrings(routed(spec))?.reason ?? null, expected));
});
