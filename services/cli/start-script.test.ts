/** The shell script that starts the command gives Node the same flags for a service as `sandbus up` does. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { nodeFlags } from '../platform/node-flags.ts';
import { serviceNames } from '../platform/topology.ts';
import { sandbusProgram } from './cli-process.ts';

const script = readFileSync(sandbusProgram, 'utf8');

for (const service of serviceNames)
  test(`flags of Node for ${service}`, () => {
    const [, flags = ''] = new RegExp(`'service ${service}'\\) flags='([^']*)'`).exec(script) ?? [];
    assert.deepEqual(flags.split(' ').filter(Boolean), nodeFlags(service));
  });
