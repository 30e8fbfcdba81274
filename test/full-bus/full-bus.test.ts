/** Audit stands still: work slows down, submitters are refused, services never, and nothing is lost. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { eventually } from '../with-nats.ts';
import type { TestSystem } from '../with-system.ts';
import { startTestSystem } from '../with-system.ts';
import type { Filled } from './fill.ts';
import { fill, openJobs, refusedPublishes } from './fill.ts';

let system: TestSystem;
before(async () => {
  system = await startTestSystem({}, { sizeFactor: 0.0015 });
});
after(async () => {
  signalAudit('SIGCONT');
  await system.stop();
});

const signalAudit = (name: NodeJS.Signals) => process.kill(system.system.pidOf('audit'), name);

let filled: Filled;
test('a full bus refuses submitters with BUS_FULL, and only them', async () => {
  signalAudit('SIGSTOP');
  filled = await fill(system, 400);
  assert.ok(filled.accepted.length > 20, `${filled.accepted.length} accepted`);
  assert.deepEqual([...filled.refused.keys()], ['BUS_FULL']);
  assert.ok(filled.fullest < 1, `${filled.fullest}`);
});

test('what was accepted ends once audit is back, and no service was ever refused', async () => {
  signalAudit('SIGCONT');
  await eventually(
    'all accepted jobs have ended',
    async () => (await openJobs(system, filled.accepted)).length === 0,
    55_000,
  );
  assert.deepEqual(await refusedPublishes(system.stateDir), []);
});
