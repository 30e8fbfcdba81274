import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JobEntry } from '../platform/job-state.ts';
import { openEntry } from '../platform/job-state.ts';
import { kvKey } from '../platform/topology.ts';
import { Admission } from './admission.ts';

function job(tenant: string, number: number, changes: Partial<JobEntry> = {}): JobEntry {
  const ref = { tenant, jobId: `job-${number}` };
  const facts = { submissionSequence: 1, traceparent: null, deadline: 9, maxAttempts: 1, concurrency: 2 };
  return { ...openEntry(ref, facts), ...changes };
}
const routed = { runtime: 'bash', deviceClass: 'cpu' };
const turns = (admission: Admission): string[] => {
  const keys: string[] = [];
  for (let next = admission.next(); next !== null; next = admission.next()) keys.push(next.key);
  return keys;
};

test('a tenant gets its places, others theirs, and asking again takes no second one', () => {
  const admission = new Admission();
  const entered = [job('a', 1), job('a', 2), job('a', 3), job('b', 1), job('a', 1)].map((one) =>
    admission.enter(one),
  );
  assert.deepEqual(entered, [true, true, false, true, true]);
});

test('held jobs go in their order when one ends; a new one does not overtake them', () => {
  const admission = new Admission();
  for (const number of [1, 2]) admission.see(job('a', number, routed));
  for (const [number, held] of [
    [3, 30],
    [4, 20],
  ] as const)
    admission.see(job('a', number, { held: 99, submissionSequence: held }));
  assert.deepEqual(turns(admission), []);
  admission.see(job('a', 1, { ...routed, state: 'ended' }));
  assert.equal(admission.enter(job('a', 5)), false);
  assert.deepEqual(turns(admission), ['a.job-4']);
  admission.forget(kvKey(job('a', 2)));
  assert.deepEqual(turns(admission), ['a.job-3']);
});

test('tenants take turns', () => {
  const admission = new Admission();
  for (const [number, tenant] of ['a', 'a', 'a', 'b', 'b'].entries())
    admission.see(job(tenant, number, { held: 99, submissionSequence: number }));
  assert.deepEqual(turns(admission), ['a.job-0', 'b.job-3', 'a.job-1', 'b.job-4']);
});

test('a held job that was cancelled is not waited for', () => {
  const admission = new Admission();
  admission.see(job('a', 1, { held: 1 }));
  admission.see(job('a', 1, { held: 1, state: 'ended' }));
  assert.deepEqual(turns(admission), []);
});

test('without a ceiling everything goes', () => {
  const admission = new Admission();
  const entered = Array.from({ length: 100 }, (_, number) =>
    admission.enter(job('a', number, { concurrency: null })),
  );
  assert.ok(entered.every(Boolean));
});
