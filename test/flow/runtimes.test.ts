/** One sandbox for every language: each runtime runs, and the record of each names the same filter of 215 calls. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { installation } from '../../services/platform/config.ts';
import { runChild } from '../../services/platform/process.ts';
import type { BuiltPlugin } from '../plugins/build.ts';
import { buildPlugins } from '../plugins/build.ts';
import type { TestSystem } from '../with-system.ts';
import { finished, startTestSystem, text } from '../with-system.ts';

let system: TestSystem;
let plugins: BuiltPlugin[];
let policy: { digest: string; names: string[] };
before(async () => {
  system = await startTestSystem();
  plugins = await buildPlugins(join(system.stateDir, 'plugins'));
  const printed = await runChild(installation.launcher, ['syscalls', '--json'], {});
  policy = JSON.parse(text(printed.stdout));
});
after(() => system.stop());

test('the filter has exactly 215 names', () => {
  assert.equal(policy.names.length, 215);
  assert.equal(new Set(policy.names).size, 215);
  assert.match(policy.digest, /^[0-9a-f]{64}$/);
});

test('every language runs in the same sandbox', async (t) => {
  const hellos = plugins.filter((plugin) => plugin.kind === 'hello');
  await Promise.all(
    hellos.map((plugin) =>
      t.test(plugin.name, async (each) => {
        if ('skipped' in plugin) return each.skip(plugin.skipped);
        const bytes = await readFile(plugin.file);
        const result = finished(await system.run(plugin.name, bytes, { args: ['one', 'two'] }));
        assert.equal(result.outcome, 'exited', text(result.stderr.inline) + JSON.stringify(result.error));
        assert.equal(result.exitCode, 0, text(result.stderr.inline));
        assert.equal(result.runtime, plugin.runtime);
        assert.equal(result.sandbox.filterDigest, policy.digest);
        assert.deepEqual(result.denials, []);
        assert.equal(result.sandbox.network, 'none');
        assert.ok(result.usage.wallMicros > 0 && (result.usage.peakMemoryBytes ?? 0) > 0);
      }),
    ),
  );
});
