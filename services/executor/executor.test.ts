/** The executor as a process, with a real bus, the real launcher and real plugins. */
import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { JobFinished, Limits } from '../../schemas/generated/events.ts';
import { kvKey, objectKey, subjects } from '../platform/topology.ts';
import { expectValue } from '../trust/fixture.ts';
import { DEFAULT_LIMITS, encodeTrustStore, withRevokedDigest } from '../trust/index.ts';
import type { WorkRequest } from './fixture.ts';
import { digest, ExecutorFixture, eventually, marked, text } from './fixture.ts';

let f: ExecutorFixture;
before(async () => {
  f = await ExecutorFixture.open();
  await f.startExecutor('one', { SANDBUS_MEMORY_BUDGET: String(4 * 1024 ** 3) });
});
after(() => f.close());

const bash = (source: string, more: Partial<WorkRequest> = {}): WorkRequest => ({
  name: 'plugin.sh',
  source: `${source}\n`,
  ...more,
});
const inline = (content: string) => ({
  inline: Buffer.from(content),
  sha256: digest(Buffer.from(content)),
  size: content.length,
});
const limits = (changes: Partial<Limits>) => ({ limits: { ...DEFAULT_LIMITS, ...changes } });

describe('a job that ends by itself', () => {
  const cases: [what: string, request: WorkRequest, expected: Partial<JobFinished>, stdout: string][] = [
    ['says something', bash('echo hello'), { outcome: 'exited', exitCode: 0 }, 'hello\n'],
    ['fails', bash('exit 7'), { outcome: 'exited', exitCode: 7 }, ''],
    ['kills itself', bash('kill -9 $$'), { outcome: 'signaled', signal: 9 }, ''],
    ['takes arguments', bash('printf "%s|" "$@"', { spec: { args: ['a b', '', 'ü'] } }), {}, 'a b||ü|'],
    ['reads its input', bash('cat', { spec: { stdin: inline('given') } }), {}, 'given'],
    ['has no input', bash('cat; echo end'), {}, 'end\n'],
    [
      'reads a file',
      bash('cat in/x.txt', { spec: { inputs: [{ name: 'in/x.txt', content: inline('file') }] } }),
      {},
      'file',
    ],
    [
      'sees its variables, and may not forge who it is',
      bash('echo "$A $SANDBUS_JOB_ID" | sed "s/[0-9a-f-]\\{36\\}/ID/"; echo "$GOMAXPROCS"', {
        spec: { env: { A: 'mine', SANDBUS_JOB_ID: 'forged' }, ...limits({ cpuMillis: 1500 }) },
      }),
      {},
      'mine ID\n2\n',
    ],
    [
      'runs for too long',
      bash('echo before; sleep 60', { spec: limits({ wallMs: 300 }) }),
      { outcome: 'wall_time_exceeded' },
      'before\n',
    ],
    [
      'says too much',
      bash('yes', { spec: limits({ outputBytes: 1000 }) }),
      { outcome: 'output_exceeded' },
      'y\n'.repeat(500),
    ],
    ['is a python script', { name: 'p.py', source: 'print(6*7)\n' }, { runtime: 'python' }, '42\n'],
    [
      'is TypeScript',
      { name: 'p.ts', source: 'const x: number = 6; console.log(x)\n' },
      { runtime: 'node' },
      '6\n',
    ],
    ['is a ruby script', { name: 'p.rb', source: 'puts 6*7\n' }, { runtime: 'ruby' }, '42\n'],
  ];
  for (const [what, request, expected, stdout] of cases)
    test(what, async () => {
      const event = await f.finished(await f.route(request));
      for (const [field, value] of Object.entries(expected))
        assert.equal(event[field as keyof JobFinished], value, `${field}: ${text(event.stderr.inline)}`);
      assert.equal(text(event.stdout.inline), stdout);
      assert.match(event.sandbox.filterDigest, /^[0-9a-f]{64}$/);
    });

  test('its output is in the log, in order, whole', async () => {
    const job = await f.route(
      bash('for i in 1 2 3; do echo out $i; echo err $i >&2; sleep 0.1; done; seq 100000'),
    );
    const event = await f.finished(job);
    const chunks = await f.logChunks(job);
    for (const stream of ['stdout', 'stderr'] as const) {
      const own = chunks.filter((chunk) => chunk.stream === stream);
      const bytes = Buffer.concat(own.map((chunk) => chunk.bytes));
      assert.deepEqual([bytes.length, digest(bytes)], [event[stream].totalBytes, event[stream].sha256]);
      assert.deepEqual(
        own.map((chunk) => chunk.sequence),
        own.map((_, index) => index),
      );
      for (const chunk of own) assert.ok(chunk.bytes.length <= 64 * 1024);
      let offset = 0;
      for (const chunk of own) {
        assert.equal(chunk.offset, offset);
        offset += chunk.bytes.length;
      }
    }
    assert.equal(event.stdout.inline.length, 64 * 1024);
  });

  test('files in /job/out become artifacts of the tenant', async () => {
    const job = await f.route(
      bash('mkdir -p out/sub; printf content > out/sub/a.txt; ln -s /etc/passwd out/link'),
    );
    const event = await f.finished(job);
    const sha256 = digest(Buffer.from('content'));
    assert.deepEqual(
      event.artifacts.map((artifact) => ({ ...artifact })),
      [{ name: 'sub/a.txt', size: 7, sha256 }],
    );
    assert.deepEqual(
      event.skippedOutputs.map(({ name, reason }) => `${name}: ${reason}`),
      ['link: symlink'],
    );
    const read: Uint8Array[] = [];
    assert.ok(
      await f.artifacts.read(objectKey(job.tenant, sha256), sha256, (chunk) => void read.push(chunk)),
    );
    assert.equal(Buffer.concat(read).toString(), 'content');
  });

  test('start and end are on the bus once, and the start describes the sandbox', async () => {
    const job = await f.route(bash('true'));
    const event = await f.finished(job);
    const [started, ...more] = await f.published('JobStarted', 'started', job);
    assert.deepEqual([started?.attempt, started?.executor, more.length], [1, 'one', 0]);
    assert.equal(started?.sandbox.filterDigest, event.sandbox.filterDigest);
    assert.deepEqual(new Set(started?.sandbox.namespaces), new Set(event.sandbox.namespaces));
    assert.deepEqual(await f.published('JobFinished', 'finished', job), [event]);
  });

  test('nothing of a job stays on the disk', async () => {
    await f.finished(await f.route(bash('true')));
    await eventually('folders gone', async () => {
      const names = await readdir(join(f.folder, 'executor/jobs/one'));
      return names.length === 1 ? names : null;
    });
  });
});

describe('a job that must not run', () => {
  const canary = bash('echo ran > out/canary');
  const cases: [what: string, request: WorkRequest, reason: string, detail: RegExp][] = [
    [
      'its plugin is not in the store',
      { ...canary, source: 'absent', stored: false },
      'PLUGIN_UNAVAILABLE',
      /plugin\.sh/,
    ],
    [
      'its input is not in the store',
      { ...canary, spec: { inputs: [{ name: 'a', content: { ...inline('gone'), inline: null } }] } },
      'PLUGIN_UNAVAILABLE',
      /input "a"/,
    ],
    [
      'its inline input is not what was announced',
      { ...canary, spec: { stdin: { ...inline('abc'), sha256: digest(Buffer.from('abd')) } } },
      'PLUGIN_UNAVAILABLE',
      /standard input/,
    ],
    [
      'its envelope is of no use',
      { ...canary, job: { envelope: Buffer.from('{}') } },
      'MALFORMED',
      /envelope/,
    ],
    [
      'its signature is about another file',
      { ...canary, statement: { sha256: '0'.repeat(64) } },
      'DIGEST_MISMATCH',
      /./,
    ],
    ['its statement has expired', { ...canary, statement: { expiresMs: Date.now() - 1000 } }, 'EXPIRED', /./],
    [
      'it asks for more than policy allows',
      { ...canary, spec: { maxAttempts: 9 } },
      'LIMIT_EXCEEDED',
      /maxAttempts/,
    ],
    ['its deadline is over', { ...canary, spec: { deadline: 1 } }, 'DEADLINE_PASSED', /had to start/],
    [
      'an argument is too long',
      { ...canary, spec: { args: ['x'.repeat(200_000)] } },
      'LIMIT_EXCEEDED',
      /200000/,
    ],
    ['an argument has a NUL', { ...canary, spec: { args: ['x\0'] } }, 'MALFORMED', /NUL/],
    [
      'the verifier had another store of the same version',
      { ...canary, job: { trustStoreDigest: 'f'.repeat(64) } },
      'TRUST_STORE_OUTDATED',
      /version/,
    ],
  ];
  for (const [what, request, reason, detail] of cases)
    test(what, async () => {
      const job = await f.route(request);
      const event = await f.rejected(job);
      assert.deepEqual([event.stage, event.reason], ['executor', reason], event.detail);
      assert.match(event.detail, detail);
      assert.deepEqual(await f.published('JobStarted', 'started', job), []);
    });

  test('more memory than this executor has: refused only after others had their chance', async () => {
    const job = await f.route(bash('true', { spec: limits({ memoryBytes: 6 * 1024 ** 3 }) }));
    const event = await f.rejected(job, 30_000);
    assert.deepEqual([event.reason, /SANDBUS_MEMORY_BUDGET/.test(event.detail)], ['LIMIT_EXCEEDED', true]);
  });

  test('a store that is too old waits for the newer one, then the job runs', async () => {
    const next = withRevokedDigest(f.store, 'a'.repeat(64));
    const trustStoreDigest = digest(expectValue(encodeTrustStore(next)));
    const job = await f.route(
      bash('echo ran', { job: { trustStoreVersion: next.version, trustStoreDigest } }),
    );
    await eventually('a retry', async () => ((await f.log()).includes('TRUST_STORE_OUTDATED') ? true : null));
    assert.equal((await f.states.read(job))?.entry.state, 'open');
    await f.publishTrust(next);
    assert.equal(text((await f.finished(job)).stdout.inline), 'ran\n');
  });
});

describe('a job that is ended', () => {
  const sleeper = bash('echo up; sleep 100', { spec: limits({ wallMs: 60_000 }) });

  test('by a cancel request: outcome cancelled, nothing left behind', async () => {
    const job = await f.route(sleeper);
    await eventually('output', async () => ((await f.logChunks(job)).length > 0 ? true : null));
    await f.states.change(job, (entry) => ({ ...entry, cancel: { requestedBy: 'ada', reason: 'enough' } }));
    f.bus.notify(subjects.cancelNotice('one'), Buffer.from(kvKey(job)));
    const event = await f.finished(job);
    assert.deepEqual([event.outcome, text(event.stdout.inline)], ['cancelled', 'up\n']);
  });

  test('by a revocation of its plugin', async () => {
    const job = await f.route({ ...sleeper, source: `${sleeper.source}# revoked\n` });
    await eventually('output', async () => ((await f.logChunks(job)).length > 0 ? true : null));
    await f.publishTrust(withRevokedDigest(f.store, digest(Buffer.from(`${sleeper.source}# revoked\n`))));
    const event = await f.finished(job);
    assert.deepEqual([event.outcome, event.error?.step], ['cancelled', 'revoked']);
  });

  test('by somebody else: the late result is recorded as superseded', async () => {
    const job = await f.route(bash('echo up; sleep 1'));
    await eventually('output', async () => ((await f.logChunks(job)).length > 0 ? true : null));
    const other = {
      subject: subjects.job('cancelled', job),
      id: 'x',
      cause: { stream: 'JOBS', sequence: 1 },
      signature: '',
    };
    const terminal = { ...other, data: Buffer.from('other').toString('base64'), traceparent: null };
    await f.states.change(job, (entry) => ({ ...entry, state: 'ended', terminal }));
    const [late] = await eventually('superseded', async () => {
      const found = await f.published('JobFinished', 'superseded', job);
      return found.length > 0 ? found : null;
    });
    assert.equal(late?.superseded, true);
    assert.equal((await f.states.read(job))?.entry.terminal?.id, 'x');
    assert.deepEqual(await f.published('JobFinished', 'finished', job), []);
  });
});

test('two executors share the work, and every job runs once', async () => {
  const g = await ExecutorFixture.open();
  try {
    await Promise.all(['left', 'right'].map((id) => g.startExecutor(id)));
    const jobs = [];
    for (let i = 0; i < 30; i++) jobs.push(await g.route(bash(`echo ${i}`)));
    const executors = new Set<string>();
    for (const [i, job] of jobs.entries()) {
      const event = await g.finished(job);
      executors.add(event.executor);
      assert.equal(text(event.stdout.inline), `${i}\n`);
      const started = await g.published('JobStarted', 'started', job);
      assert.deepEqual(
        started.map(({ executor, attempt }) => [executor, attempt]),
        [[event.executor, 1]],
      );
    }
    assert.deepEqual([...executors].sort(), ['left', 'right']);
  } finally {
    await g.close();
  }
});

test('the bus restarts under a running job: it runs once, and its end is recorded', async () => {
  const g = await ExecutorFixture.open();
  try {
    await g.startExecutor('patient', { SANDBUS_LEASE_MS: '15000' });
    const job = await g.route(bash('echo up; sleep 3; echo end'));
    await eventually('output', async () => ((await g.logChunks(job)).length > 0 ? true : null));
    await g.restartNats();
    const event = await g.finished(job);
    assert.deepEqual([event.outcome, text(event.stdout.inline)], ['exited', 'up\nend\n']);
    assert.equal((await g.published('JobStarted', 'started', job)).length, 1);
    const [once, ...more] = await eventually('published', async () => {
      const found = await g.published('JobFinished', 'finished', job);
      return found.length > 0 ? found : null;
    });
    assert.deepEqual([once, more], [event, []]);
    assert.equal((await g.finished(await g.route(bash('exit 4')))).exitCode, 4);
  } finally {
    await g.close();
  }
});

describe('executors that die', () => {
  const marker = (name: string) => `SANDBUS_TEST_MARK=${name}-${process.pid}`;
  const sleeper = (name: string, more: Partial<WorkRequest['spec']> = {}) =>
    bash('echo attempt; sleep 100', {
      name: 'plugin.sh',
      spec: { ...limits({ wallMs: 60_000 }), env: { MARK: marker(name) }, ...more },
    });

  test('SIGKILL leaves no process, and the job may start again only if it asked for it', async () => {
    const g = await ExecutorFixture.open();
    try {
      const first = await g.startExecutor('first');
      const once = await g.route(sleeper('once'));
      const twice = await g.route(sleeper('twice', { maxAttempts: 2 }));
      for (const job of [once, twice])
        await eventually('output', async () => ((await g.logChunks(job)).length > 0 ? true : null));
      first.kill('SIGKILL');
      await first.exited;
      await eventually('no process', async () => ((await marked(marker(''))).length === 0 ? true : null));
      await g.startExecutor('second', { SANDBUS_GRACE_MS: '0' });
      // The message comes again 30 s after its last sign of life.
      const started = await eventually(
        'second attempt',
        async () => {
          const events = await g.published('JobStarted', 'started', twice);
          return events.length > 1 ? events : null;
        },
        50_000,
      );
      assert.deepEqual(
        started.map(({ attempt, executor }) => [attempt, executor]),
        [
          [1, 'first'],
          [2, 'second'],
        ],
      );
      assert.equal((await g.published('JobStarted', 'started', once)).length, 1);
      assert.equal((await g.states.read(once))?.entry.state, 'started');
    } finally {
      await g.close();
    }
  });

  test('one of the same name is refused, the first goes on', async () => {
    await assert.rejects(f.startExecutor('one'), /name one runs already.*SANDBUS_EXECUTOR_ID/s);
    assert.equal((await f.finished(await f.route(bash('true')))).outcome, 'exited');
  });

  test('a launcher that cannot be started: nothing runs, and the mend is said', async () => {
    const started = f.startExecutor('broken', { SANDBUS_LAUNCHER: '/absent/launcher' });
    await assert.rejects(started, /\/absent\/launcher.*make -C sandbox-runtime/s);
  });

  test('SIGTERM: running jobs get their grace, then are ended and recorded', async () => {
    const g = await ExecutorFixture.open();
    try {
      const executor = await g.startExecutor('leaving', { SANDBUS_GRACE_MS: '1500' });
      const long = await g.route(sleeper('long'));
      const short = await g.route(bash('echo short; sleep 1'));
      for (const job of [long, short])
        await eventually('output', async () => ((await g.logChunks(job)).length > 0 ? true : null));
      executor.kill('SIGTERM');
      assert.deepEqual(await executor.exited, { code: 0, signal: null });
      const [ended, done] = [await g.finished(long, 100), await g.finished(short, 100)];
      assert.deepEqual([ended.outcome, ended.error?.step], ['cancelled', 'executor-shutdown']);
      assert.deepEqual([done.outcome, done.exitCode], ['exited', 0]);
      assert.deepEqual(await marked(marker('long')), []);
    } finally {
      await g.close();
    }
  });
});
