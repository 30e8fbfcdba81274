import assert from 'node:assert/strict';
import { test } from 'node:test';
import { makePlan } from './schedule.ts';

const options = { seed: 7, jobs: 200, windowMs: 120_000, leaseMs: 12_000, nodes: 1 };

test('the same seed gives the same faults and jobs, another seed gives others', () => {
  assert.deepEqual(makePlan(options), makePlan(options));
  assert.notDeepEqual(makePlan(options).faults, makePlan({ ...options, seed: 8 }).faults);
});

test('within two minutes everything dies, and an executor is frozen', () => {
  const { faults } = makePlan(options);
  assert.deepEqual([...new Set(faults.map(({ kind, part }) => `${kind} ${part}`))].sort(), [
    'freeze executor-2',
    'kill audit',
    'kill executor',
    'kill executor-2',
    'kill nats-server',
    'kill router',
    'kill verifier',
  ]);
  assert.ok(faults.every(({ atMs }) => atMs < options.windowMs + 2 * options.leaseMs));
});
