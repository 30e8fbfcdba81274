import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { JobResult } from '../../client/index.ts';
import type { DemoCase, Expectation } from './cases.ts';
import { filterDigests, judge, renderReport } from './report.ts';

const demoCase = (expect: Expectation): DemoCase => ({
  plugin: 'hello.py',
  runtime: 'python',
  language: 'Python',
  bytes: new Uint8Array(),
  signature: 'valid',
  args: [],
  limits: {},
  expect,
});

/** A finished job, as far as the report looks at it. */
function finished(more: object = {}): JobResult {
  const stream = (text: string) => ({
    inline: Buffer.from(text),
    totalBytes: text.length,
    keptBytes: text.length,
  });
  const event = {
    outcome: 'exited',
    exitCode: 0,
    signal: null,
    error: null,
    usage: { wallMicros: 12_000, userMicros: 3000, systemMicros: 1000, peakMemoryBytes: 4 * 1024 * 1024 },
    stdout: stream('hello from Python 3.11\n'),
    stderr: stream(''),
    denials: [],
    sandbox: { filterDigest: 'f1' },
    ...more,
  };
  return { kind: 'finished', event, record: {} } as unknown as JobResult;
}

const rejected = {
  kind: 'rejected',
  event: { stage: 'verifier', reason: 'UNSIGNED', detail: 'd' },
  record: {},
} as unknown as JobResult;
const hello: Expectation = { outcome: 'exited', exitCode: 0, says: 'hello from Python' };
const denial = { syscall: 'unshare', count: 2 };

const cases: readonly (readonly [
  name: string,
  expect: Expectation,
  result: JobResult | null,
  fault: RegExp | null,
])[] = [
  ['as expected', hello, finished(), null],
  ['another exit code', hello, finished({ exitCode: 1 }), /exit code 1, not 0/],
  [
    'another greeting',
    { ...hello, says: 'hello from Ruby' },
    finished(),
    /does not begin with "hello from Ruby"/,
  ],
  [
    'killed',
    hello,
    finished({ outcome: 'memory_exceeded', exitCode: null }),
    /outcome memory-exceeded, not exited/,
  ],
  [
    'rejected although it should run',
    hello,
    rejected,
    /outcome rejected, not exited \(rejected by the verifier: UNSIGNED/,
  ],
  ['rejected as it should be', { outcome: 'rejected', reason: 'UNSIGNED' }, rejected, null],
  [
    'rejected for another reason',
    { outcome: 'rejected', reason: 'DIGEST_MISMATCH' },
    rejected,
    /reason UNSIGNED, not DIGEST_MISMATCH/,
  ],
  [
    'it ran although it should be rejected',
    { outcome: 'rejected' },
    finished(),
    /outcome exited, not rejected/,
  ],
  ['a call was refused', { outcome: 'exited', denies: 'unshare' }, finished({ denials: [denial] }), null],
  ['a call was not refused', { outcome: 'exited', denies: 'unshare' }, finished(), /unshare was not refused/],
  ['it did not end', hello, null, /it has not ended/],
];

describe('the demo judges each job', () => {
  for (const [name, expect, result, fault] of cases)
    it(name, () => {
      const { row, faults } = judge(demoCase(expect), 'abc', result);
      assert.equal(row.expected, fault === null, faults.join('; '));
      if (fault !== null) assert.match(faults.join('; '), fault);
    });

  it('an object has every field, null where there is nothing to say', () => {
    assert.deepEqual(judge(demoCase({ outcome: 'rejected' }), 'abc', rejected).row, {
      plugin: 'hello.py',
      runtime: 'python',
      language: 'Python',
      outcome: 'rejected',
      reason: 'UNSIGNED',
      exitCode: null,
      wallMs: null,
      cpuMs: null,
      peakMemoryBytes: null,
      denied: null,
      filterDigest: null,
      traceId: 'abc',
      expected: true,
    });
  });

  it('a row shows it to people', () => {
    const jobs = [
      judge(demoCase(hello), 'abc', finished({ denials: [denial] })),
      judge(demoCase({ outcome: 'rejected' }), 'abc', rejected),
    ];
    assert.deepEqual(renderReport(jobs).trimEnd().split('\n'), [
      'PLUGIN    RUNTIME          OUTCOME             WALL     CPU  PEAK MEMORY  DENIED SYSCALLS',
      'hello.py  python (Python)  exited 0           12 ms  4.0 ms      4.0 MiB  2 unshare        as expected',
      'hello.py  python (Python)  rejected UNSIGNED      -       -            -  -                as expected',
    ]);
  });

  it('only jobs that ran have a filter to compare', () => {
    const other = finished({ sandbox: { filterDigest: 'f2' } });
    const jobs = [finished(), rejected, finished(), other].map((result) =>
      judge(demoCase(hello), 'abc', result),
    );
    assert.deepEqual(filterDigests(jobs), ['f1', 'f2']);
  });
});
