/** A job that runs for longer than the ack wait of its message, 30 s: the message is kept alive, and the job runs once. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { ackWaitMs } from '../../services/platform/topology.ts';
import { countStarts } from '../crash/starts.ts';
import type { TestSystem } from '../with-system.ts';
import { connectAsDeployment, finished, startTestSystem, text } from '../with-system.ts';

let system: TestSystem;
let starts: Awaited<ReturnType<typeof countStarts>>;
before(async () => {
  starts = await countStarts();
  // Two executors: a message that came again would find a free one.
  system = await startTestSystem({ SANDBUS_BASH: starts.bash }, { executors: 2 });
});
after(async () => {
  await system.stop();
  await starts.close();
});

test('it runs once, and its message is delivered once', { timeout: 90_000 }, async () => {
  const seconds = ackWaitMs / 1000 + 4;
  const source = `echo "$SANDBUS_JOB_ID" > ${starts.pipe}; sleep ${seconds}; echo done\n`;
  const result = finished(await system.run('long.sh', source, { limits: { wallMs: 60_000 } }));
  assert.deepEqual([result.outcome, text(result.stdout.inline)], ['exited', 'done\n']);
  assert.equal(starts.of(result.jobId), 1);
  const kinds: string[] = [];
  for await (const { record } of system.client.records({ jobId: result.jobId, follow: false }))
    kinds.push(record.kind);
  assert.deepEqual(kinds, ['submitted', 'verified', 'routed', 'started', 'finished']);
  const deployment = await connectAsDeployment(system);
  const deliveries = await deployment.deliveries('JOBS', 'work-bash-cpu').finally(() => deployment.close());
  assert.equal(deliveries, 1);
});
