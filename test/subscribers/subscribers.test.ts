/** Somebody else's programs read what we write: the audit stream in Python, and exported events by OCSF's own schema. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { CliFixture } from '../../services/cli/cli-process.ts';
import type { JobResult } from '../../services/client/index.ts';
import { tenantCredentials, userCredentials } from '../../services/platform/access-paths.ts';
import { findPython, runPython } from './python.ts';

const python = await findPython();
const program = 'program' in python ? python.program : '';
const skip = 'missing' in python ? python.missing : false;

describe('in Python', { skip }, () => {
  let cli: CliFixture;
  const results: JobResult[] = [];
  before(async () => {
    cli = await CliFixture.start();
    const { system } = cli;
    results.push(
      await system.run('well.sh', 'echo well\n', { args: ['one', 'two words'] }),
      await system.run('denied.sh', 'unshare --user true; exit 1\n'),
      await system.run('slow.sh', 'sleep 100\n', { limits: { wallMs: 1500 } }),
    );
    const { jobId } = await system.client.submit({ plugin: { name: 'x.sh', bytes: Buffer.from('exit\n') } });
    results.push(await system.client.wait(jobId));
    // No executor here serves GPU routes, so that this one waits until it is cancelled.
    const bytes = Buffer.from('echo never\n');
    const envelope = system.sign('gpu.sh', bytes, { requiresGpu: true });
    const waits = await system.client.submit({
      plugin: { name: 'gpu.sh', bytes },
      envelope,
      requiresGpu: true,
    });
    for await (const { record } of system.client.records({ jobId: waits.jobId }))
      if (record.kind === 'routed') break;
    await system.client.cancel(waits.jobId, 'no GPU here');
    results.push(await system.client.wait(waits.jobId));
  });
  after(() => cli?.stop());

  const roles = [
    [
      'operator',
      () => [
        '--credentials',
        userCredentials(cli.system.stateDir, 'deployment'),
        '--inbox',
        '_INBOX_deployment',
      ],
    ],
    ['tenant', () => ['--credentials', tenantCredentials(cli.system.stateDir, 'acme'), '--tenant', 'acme']],
  ] as const;
  for (const [role, credentials] of roles)
    test(`the ${role} reads every record and decodes every event`, async () => {
      const own: unknown[] = [];
      for await (const { record, event } of cli.system.client.records({ follow: false }))
        own.push([record.sequence, record.kind, event?.name, Buffer.from(record.leafHash).toString('hex')]);
      const args = ['--url', cli.system.url, ...credentials(), '--count', String(own.length), role];
      const { code, stdout, stderr } = await runPython(program, 'subscriber.py', args);
      assert.equal(code, 0, stderr);
      const lines = stdout
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line));
      assert.deepEqual(
        lines.map(({ sequence, kind, name, leafHash }) => [sequence, kind, name, leafHash]),
        own,
      );
      const [ended] = lines.filter(({ kind }) => kind === 'finished');
      assert.equal(ended.event.outcome, 'exited');
      assert.equal(Buffer.from(ended.event.stdout.inline, 'hex').toString(), 'well\n');
    });

  test('exported events are valid by the schema that OCSF publishes, and say what happened', async () => {
    const { code, stdout, stderr } = await cli.sandbus(['audit', 'export', '--format', 'ocsf']);
    assert.equal(code, 0, stderr);
    const verdict = await runPython(program, 'ocsf_validate.py', [], stdout.toString());
    assert.deepEqual([verdict.code, verdict.stdout], [0, '8 events\n'], verdict.stderr);
    const events = stdout
      .toString()
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    assert.deepEqual(
      events.map(({ activity_name, status, status_code, process }) => [
        process.name,
        activity_name,
        status,
        status_code,
      ]),
      [
        ['well.sh', 'Launch', 'Success', undefined],
        ['well.sh', 'Terminate', 'Success', 'EXITED'],
        ['denied.sh', 'Launch', 'Success', undefined],
        ['denied.sh', 'Terminate', 'Failure', 'EXITED'],
        ['slow.sh', 'Launch', 'Success', undefined],
        ['slow.sh', 'Terminate', 'Failure', 'WALL-TIME-EXCEEDED'],
        ['x.sh', 'Launch', 'Failure', 'UNSIGNED'],
        ['gpu.sh', 'Launch', 'Failure', 'CANCELLED'],
      ],
    );
    assert.equal(events[1].process.cmd_line, 'well.sh "one" "two words"');
    assert.match(events[1].metadata.correlation_uid, /^[0-9a-f]{32}$/);
    assert.equal(events[3].unmapped.denials[0].syscall, 'unshare');
  });

  test('the validation finds an event that is not valid', async () => {
    const { stdout } = await cli.sandbus(['audit', 'export', '--format', 'ocsf']);
    const [first = '{}'] = stdout.toString().split('\n');
    for (const change of [
      { class_name: 7 },
      { invented: 1 },
      { device: undefined },
      { process: { name: 'no id' } },
    ]) {
      const wrong = JSON.stringify({ ...JSON.parse(first), ...change });
      const { code } = await runPython(program, 'ocsf_validate.py', [], `${wrong}\n`);
      assert.equal(code, 1, JSON.stringify(change));
    }
  });

  test('an export that begins in the middle of a job knows its beginning', async () => {
    const finished = results[0]?.record.tenantSequence ?? 0;
    const args = ['audit', 'export', '--format', 'ocsf', '--since', String(finished)];
    const { stdout } = await cli.sandbus(args);
    const [first] = stdout
      .toString()
      .split('\n')
      .map((line) => (line === '' ? null : JSON.parse(line)));
    assert.deepEqual([first.activity_name, first.process.name], ['Terminate', 'well.sh']);
  });
});
