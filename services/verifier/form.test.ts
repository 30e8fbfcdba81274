import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JobSubmitted } from '../../schemas/generated/events.ts';
import { findFault } from './form.ts';

const sha256 = 'a'.repeat(64);
const content = { inline: null, sha256, size: 3 };
const good: JobSubmitted = {
  jobId: '019d0000-0000-7000-8000-000000000001',
  tenant: 'acme',
  submittedAt: 1,
  plugin: { name: 'a.py', content },
  envelope: null,
  args: ['one', ''],
  env: { LANG: 'C', _x: '1' },
  stdin: null,
  inputs: [{ name: 'dir/file.txt', content }],
  limits: {
    memoryBytes: null,
    cpuMillis: null,
    wallMs: null,
    cpuTimeMs: null,
    processes: null,
    outputBytes: null,
    tmpBytes: null,
  },
  requiresGpu: false,
  network: 'none',
  maxAttempts: 1,
  deadline: null,
  labels: { team: 'x' },
};
const input = (name: string) => ({ inputs: [{ name, content }] });

const cases: [what: string, change: Partial<JobSubmitted>, fault: RegExp | null][] = [
  ['a plain job', {}, null],
  ['an argument of 128 KiB', { args: ['x'.repeat(131_072)] }, /args\[0\] is longer/],
  ['an argument with a zero byte', { args: ['a', 'b\0c'] }, /args\[1\] has a zero byte/],
  [
    'arguments of more than execve takes',
    { args: Array.from({ length: 20 }, () => 'x'.repeat(100_000)) },
    /args and env take/,
  ],
  ['an env name with =', { env: { 'A=B': '1' } }, /env name "A=B"/],
  ['an env name with a digit first', { env: { '1': '2' } }, /env name "1": .*no digit first$/],
  ['an env name that is empty', { env: { '': '1' } }, /env name ""/],
  ['an env value with a zero byte', { env: { A: '\0' } }, /env A has a zero byte/],
  [
    'a digest in upper case',
    { plugin: { name: 'a.py', content: { ...content, sha256: sha256.toUpperCase() } } },
    /plugin: sha256/,
  ],
  [
    'a size that is not that of the bytes',
    { stdin: { inline: Buffer.from('abcd'), sha256, size: 3 } },
    /stdin: size says 3, 4/,
  ],
  [
    'a plugin too large to be inline',
    { plugin: { name: 'a.py', content: { inline: Buffer.alloc(524_289), sha256, size: 524_289 } } },
    /upload it/,
  ],
  ['a negative size', { stdin: { inline: null, sha256, size: -1 } }, /negative/],
  ['an input that climbs out', input('../etc/passwd'), /relative path/],
  ['an input that climbs out later', input('a/../../b'), /relative path/],
  ['an absolute input', input('/etc/passwd'), /relative path/],
  ['an input without a name', input(''), /relative path/],
  ['an input with =', input('a=b'), /relative path/],
  [
    'two inputs of one name',
    {
      inputs: [
        { name: 'a', content },
        { name: 'a', content },
      ],
    },
    /there twice/,
  ],
  [
    'an input where another needs a folder',
    {
      inputs: [
        { name: 'a/b/c', content },
        { name: 'a/b', content },
      ],
    },
    /input "a\/b": a file cannot be there/,
  ],
  [
    'inputs side by side, with names that begin alike',
    {
      inputs: [
        { name: 'a/b', content },
        { name: 'a/bc', content },
        { name: 'a.b', content },
      ],
    },
    null,
  ],
  ['an input in the place of the outputs', input('out'), /input "out": a file cannot be there/],
  ['an input among the outputs', input('out/seed.txt'), null],
  ['no attempt at all', { maxAttempts: 0 }, /maxAttempts is 0/],
  ['a deadline in a month', { deadline: 30 * 86_400_000_000 }, /deadline is more than 6 days/],
  [
    'a hundred labels',
    { labels: Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`l${i}`, ''])) },
    /100 labels/,
  ],
  ['a label of 2 KiB', { labels: { big: 'x'.repeat(2048) } }, /label "big"/],
];
for (const [what, change, fault] of cases)
  test(`${what}: ${fault === null ? 'in form' : fault.source}`, () => {
    const found = findFault({ ...good, ...change }, 0);
    if (fault === null) assert.equal(found, null);
    else assert.match(found ?? 'no fault', fault);
  });
