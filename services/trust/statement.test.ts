import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { expectValue, plugin } from './fixture.ts';
import { type PluginStatement, parseStatement, preAuthenticationEncoding, statementFor } from './index.ts';
import { statementSchema } from './statement-schema.ts';

test('a statement survives being written and read', () => {
  const native = plugin({ fileName: 'hello', runtime: 'native', architecture: 'aarch64', requiresGpu: true });
  for (const facts of [plugin(), native]) {
    assert.deepEqual(expectValue(parseStatement(expectValue(statementFor(facts)))), facts);
  }
});

test('equal facts make equal bytes', () => {
  assert.deepEqual(statementFor(plugin()), statementFor({ ...plugin() }));
});

describe('facts that nobody would accept are refused at signing', () => {
  const cases: [string, Partial<PluginStatement>, string][] = [
    ['a name with a space', { fileName: 'my hello.py' }, 'MALFORMED'],
    ['a name of another plugin', { name: 'payroll' }, 'MALFORMED'],
    ['an end before the beginning', { expiresMs: plugin().notBeforeMs }, 'MALFORMED'],
    ['a runtime that the extension denies', { runtime: 'ruby' }, 'RUNTIME_MISMATCH'],
    ['an architecture for a script', { architecture: 'x86_64' }, 'MALFORMED'],
    ['a native plugin without architecture', { fileName: 'hello', runtime: 'native' }, 'MALFORMED'],
    ['a time that is no number', { expiresMs: Number.NaN }, 'MALFORMED'],
    ['a year that the form cannot hold', { expiresMs: 8.64e15 }, 'MALFORMED'],
  ];
  for (const [name, changes, reason] of cases) {
    test(name, () => {
      const made = statementFor(plugin(changes));
      assert.ok(!made.ok);
      assert.equal(made.reason, reason, made.detail);
    });
  }
});

test('the signed encoding of the DSSE specification', () => {
  const encoded = preAuthenticationEncoding('http://example.com/HelloWorld', Buffer.from('hello world'));
  assert.equal(Buffer.from(encoded).toString(), 'DSSEv1 29 http://example.com/HelloWorld 11 hello world');
  const longer = preAuthenticationEncoding('é', Buffer.from('ü'));
  assert.equal(Buffer.from(longer).toString(), 'DSSEv1 2 é 2 ü', 'lengths count bytes');
});

test('the committed JSON Schema is the one that the code stands for', () => {
  const path = new URL('../../schemas/plugin-statement.schema.json', import.meta.url);
  const mend =
    'write the output of statementSchema() (services/trust/statement-schema.ts) to schemas/plugin-statement.schema.json';
  assert.deepEqual(
    JSON.parse(readFileSync(path, 'utf8')),
    JSON.parse(JSON.stringify(statementSchema())),
    mend,
  );
});
