/** The documents say what the code says. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { adviceFor, REJECT_REASONS } from '../services/trust/index.ts';

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

test('CONTRIBUTING.md gives a reason for each dependency', () => {
  const manifest = JSON.parse(read('package.json')) as Record<string, Record<string, string>>;
  const named = read('CONTRIBUTING.md');
  const all = ['dependencies', 'optionalDependencies', 'devDependencies'].flatMap((kind) =>
    Object.keys(manifest[kind] ?? {}),
  );
  for (const name of all)
    assert.ok(named.includes(name.replace('@opentelemetry/', '')), `${name} has no reason`);
});
