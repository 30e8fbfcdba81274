/** Nothing that is not signed, unaltered and trusted runs: each is rejected with its reason, and a canary shows it. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { generateKey } from '../../services/trust/index.ts';
import type { TestSystem } from '../with-system.ts';
import { finished, startTestSystem, text } from '../with-system.ts';

let system: TestSystem;
before(async () => {
  system = await startTestSystem();
});
after(() => system.stop());

/** Would be seen in its output and in its record, if a single line of it ran. */
const canary = Buffer.from('#!/bin/bash\necho alive > /job/out/canary\necho alive\n');

const refusals: [
  what: string,
  reason: string,
  submit: () => Parameters<TestSystem['client']['submit']>[0],
][] = [
  ['unsigned', 'UNSIGNED', () => ({ plugin: { name: 'canary.sh', bytes: canary } })],
  [
    'tampered after signing',
    'DIGEST_MISMATCH',
    () => ({
      plugin: { name: 'canary.sh', bytes: Buffer.concat([canary, Buffer.from('# one more line\n')]) },
      envelope: system.sign('canary.sh', canary),
    }),
  ],
  [
    'signed by an unknown key',
    'UNKNOWN_KEY',
    () => ({
      plugin: { name: 'canary.sh', bytes: canary },
      envelope: system.sign('canary.sh', canary, {}, generateKey()),
    }),
  ],
  [
    'renamed extension',
    'RUNTIME_MISMATCH',
    () => ({ plugin: { name: 'canary.py', bytes: canary }, envelope: system.sign('canary.sh', canary) }),
  ],
  [
    'an envelope that is garbage',
    'MALFORMED',
    () => ({ plugin: { name: 'canary.sh', bytes: canary }, envelope: Buffer.from('{"payload": 1') }),
  ],
  [
    'a signature with one bit changed',
    'BAD_SIGNATURE',
    () => {
      const envelope = JSON.parse(text(system.sign('canary.sh', canary)));
      const sig = Buffer.from(envelope.signatures[0].sig, 'base64');
      sig[3] = (sig[3] ?? 0) ^ 1;
      envelope.signatures[0].sig = sig.toString('base64');
      return {
        plugin: { name: 'canary.sh', bytes: canary },
        envelope: Buffer.from(JSON.stringify(envelope)),
      };
    },
  ],
  [
    'more memory than was signed',
    'LIMIT_EXCEEDED',
    () => ({
      plugin: { name: 'canary.sh', bytes: canary },
      envelope: system.sign('canary.sh', canary),
      limits: { memoryBytes: 1024 ** 3 },
    }),
  ],
  [
    'a GPU that was not signed',
    'GPU_NOT_SIGNED',
    () => ({
      plugin: { name: 'canary.sh', bytes: canary },
      envelope: system.sign('canary.sh', canary),
      requiresGpu: true,
    }),
  ],
  [
    'a deadline that has passed',
    'DEADLINE_PASSED',
    () => ({
      plugin: { name: 'canary.sh', bytes: canary },
      envelope: system.sign('canary.sh', canary),
      deadline: new Date(Date.now() - 60_000),
    }),
  ],
  [
    'a path for an input that climbs out',
    'MALFORMED',
    () => ({
      plugin: { name: 'canary.sh', bytes: canary },
      envelope: system.sign('canary.sh', canary),
      inputs: [{ name: '../../etc/cron.d/x', bytes: Buffer.from('x') }],
    }),
  ],
];

for (const [what, reason, submit] of refusals)
  test(`${what}: ${reason}`, async () => {
    const { jobId } = await system.client.submit(submit());
    const result = await system.client.wait(jobId);
    assert.equal(result.kind, 'rejected');
    assert.equal(result.kind === 'rejected' && result.event.reason, reason);
    const kinds = [];
    for await (const { record } of system.client.records({ jobId, follow: false })) kinds.push(record.kind);
    assert.ok(!kinds.includes('started'), `it started: ${kinds.join(' ')}`);
  });

test('the same canary, signed and unaltered, runs: the refusals above are not for another reason', async () => {
  const result = finished(await system.run('canary.sh', canary));
  assert.equal(result.outcome, 'exited');
  assert.equal(text(result.stdout.inline), 'alive\n');
  assert.deepEqual(
    result.artifacts.map((artifact) => artifact.name),
    ['canary'],
  );
});
