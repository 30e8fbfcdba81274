import assert from 'node:assert/strict';
import { test } from 'node:test';
import { replicaFault } from './server-version.ts';

const cases: [version: string, replicas: number, safe: boolean][] = [
  ['2.9.10', 1, true],
  ['2.9.10', 3, false],
  ['2.9.25', 3, false],
  ['2.10.29', 3, false],
  ['2.11.16', 3, false],
  ['2.11.17', 3, true],
  ['2.15.2', 3, true],
  ['3.0.0', 5, true],
  ['v2.12.1-RC.2', 3, true],
  ['unknown', 3, false],
  ['unknown', 1, true],
];
for (const [version, replicas, safe] of cases)
  test(`${replicas} replicas on ${version}: ${safe ? 'safe' : 'refused, with the mend'}`, () => {
    const fault = replicaFault(version, replicas);
    if (safe) assert.equal(fault, null);
    else assert.match(fault ?? '', /loses confirmed events.*use 2\.11\.17 or newer/);
  });
