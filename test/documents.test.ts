/** The documents say what the code says. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { adviceFor, ceilingsOf, parsePolicy, REJECT_REASONS } from '../services/trust/index.ts';

const root = join(import.meta.dirname, '..');
const read = (file: string) => readFileSync(join(root, file), 'utf8');

test('SECURITY.md has each reason of refusal with what to do about it, and no other', () => {
  const rows = [...read('SECURITY.md').matchAll(/^\| `([A-Z_]+)` \| (.*) \|$/gm)].map(([, code, advice]) => ({
    code,
    advice,
  }));
  assert.deepEqual(
    rows,
    REJECT_REASONS.map((code) => ({ code, advice: adviceFor(code) })),
  );
});

test('the example of a policy in SECURITY.md is one', () => {
  const example = /<!-- policy: .*?```json\n(.*?)```/s.exec(read('SECURITY.md'))?.[1] ?? '';
  const policy = parsePolicy(Buffer.from(example));
  assert.ok(policy.ok, policy.ok ? '' : policy.detail);
  const research = ceilingsOf(policy.value, 'research');
  assert.deepEqual([research.gpu, research.wallMs], [true, policy.value.default.wallMs]);
});

test('CONTRIBUTING.md gives a reason for each dependency', () => {
  const manifest = JSON.parse(read('package.json')) as Record<string, Record<string, string>>;
  const named = read('CONTRIBUTING.md');
  const all = ['dependencies', 'optionalDependencies', 'devDependencies'].flatMap((kind) =>
    Object.keys(manifest[kind] ?? {}),
  );
  for (const name of all)
    assert.ok(named.includes(name.replace('@opentelemetry/', '')), `${name} has no reason`);
});
