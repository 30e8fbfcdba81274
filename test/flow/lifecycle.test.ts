/** Jobs that are cancelled, run long, print much, or lose their executor; and the trace of each. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, test } from 'node:test';
import { eventually } from '../with-nats.ts';
import type { TestSystem } from '../with-system.ts';
import { connectAsDeployment, finished, processesWith, startTestSystem, text } from '../with-system.ts';

let system: TestSystem;
before(async () => {
  system = await startTestSystem({ SANDBUS_LEASE_MS: '6000' });
});
after(() => system.stop());

async function submit(name: string, source: string, request = {}): Promise<string> {
  const bytes = Buffer.from(source);
  const { jobId } = await system.client.submit({
    plugin: { name, bytes },
    envelope: system.sign(name, bytes),
    ...request,
  });
  return jobId;
}

async function started(jobId: string): Promise<void> {
  for await (const { record } of system.client.records({ jobId })) if (record.kind === 'started') return;
}

test('a running job is cancelled: its tree is gone, its outcome says so', async () => {
  const marker = 'sleep 987.654';
  const jobId = await submit('long.sh', `(${marker} &) ; ${marker}\n`, { limits: { wallMs: 60_000 } });
  await started(jobId);
  await eventually('it runs', async () => (await processesWith('987.654')).length >= 2);
  await system.client.cancel(jobId, 'enough');
  const result = finished(await system.client.wait(jobId));
  assert.equal(result.outcome, 'cancelled');
  assert.deepEqual(await processesWith('987.654'), []);
});

test('output is exact up to its limit, with the count and digest of all of it', async () => {
  const source = 'import sys\nfor i in range(40000): sys.stdout.write(f"{i:07d}\\n")\n';
  const expected = Array.from({ length: 40_000 }, (_, i) => `${String(i).padStart(7, '0')}\n`).join('');
  const result = finished(await system.run('big.py', source, { limits: { outputBytes: 400_000 } }));
  assert.equal(result.outcome, 'exited');
  assert.equal(result.stdout.totalBytes, expected.length);
  assert.equal(result.stdout.truncated, false);
  assert.equal(result.stdout.sha256, createHash('sha256').update(expected).digest('hex'));
  const chunks: Uint8Array[] = [];
  for await (const item of system.client.logs(result.jobId))
    if ('bytes' in item && item.stream === 'stdout') chunks.push(item.bytes);
  assert.equal(Buffer.concat(chunks).toString(), expected);
});

test('a job has one trace, from submit to audit, and every span but the first has its parent in it', async () => {
  const result = finished(await system.run('traced.sh', 'echo $TRACEPARENT\n'));
  const wanted = ['submit', 'verify', 'route', 'execute', 'audit.commit'];
  await eventually('all spans are stored', async () => {
    const names = (await system.client.spans(result.jobId)).map((span) => span.name);
    return wanted.every((name) => names.includes(name));
  });
  const spans = await system.client.spans(result.jobId);
  assert.equal(new Set(spans.map((span) => span.traceId)).size, 1);
  assert.ok(
    text(result.stdout.inline).includes(spans[0]?.traceId ?? 'none'),
    'the plugin got the same trace',
  );
  const ids = new Set(spans.map((span) => span.spanId));
  const roots = spans.filter((span) => span.parentSpanId === null);
  assert.deepEqual(
    roots.map((span) => span.name),
    ['submit'],
  );
  for (const span of spans)
    assert.ok(span.parentSpanId === null || ids.has(span.parentSpanId), `${span.name} has a parent`);
});

test('an executor killed in the middle leaves no process, and its job ends as lost', async () => {
  const jobId = await submit('orphan.sh', '(setsid sleep 876.543 &) ; sleep 876.543\n', {
    limits: { wallMs: 60_000 },
  });
  await started(jobId);
  await eventually('it runs', async () => (await processesWith('876.543')).length >= 2);
  process.kill(system.system.pidOf('executor'), 'SIGKILL');
  await eventually('no process is left', async () => (await processesWith('876.543')).length === 0);
  const result = finished(await system.client.wait(jobId));
  assert.equal(result.outcome, 'executor_lost');
  // The system starts another executor, and goes on.
  assert.equal(finished(await system.run('after.sh', 'exit 7\n')).exitCode, 7);
});

test('a job that waits is cancelled before it starts', async () => {
  const bytes = Buffer.from('echo never\n');
  const envelope = system.sign('gpu.sh', bytes, { requiresGpu: true });
  // No executor here serves GPU routes, so the job waits.
  const { jobId } = await system.client.submit({
    plugin: { name: 'gpu.sh', bytes },
    envelope,
    requiresGpu: true,
  });
  await eventually('it is routed', async () => (await system.client.job(jobId))?.state === 'routed');
  await system.client.cancel(jobId, 'no GPU here');
  const result = await system.client.wait(jobId);
  assert.equal(result.kind, 'cancelled');
});

test('what has ended leaves the bus empty', async () => {
  const bus = await connectAsDeployment(system);
  try {
    await eventually('SUBMISSIONS and JOBS are empty', async () => {
      const states = await Promise.all(['SUBMISSIONS', 'JOBS'].map((stream) => bus.streamState(stream)));
      return states.every((state) => state.messages === 0);
    });
  } finally {
    await bus.close();
  }
});
