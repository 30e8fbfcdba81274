import assert from 'node:assert/strict';
import { test } from 'node:test';
import { UsageError } from './errors.ts';
import { encodeTokens, findToken, newToken, parseTokens } from './query-tokens.ts';

const about = { name: 'one', tenant: 'acme', createdMs: 0, expiresMs: 1000 };
const bytesOf = (value: unknown) => Buffer.from(JSON.stringify(value));

test('a token is found by its secret alone, and only before it expires', () => {
  const one = newToken(about);
  const two = newToken({ ...about, name: 'two', tenant: null, expiresMs: null });
  const tokens = [one.token, two.token];
  assert.equal(findToken(tokens, one.secret, 999), one.token);
  assert.equal(findToken(tokens, one.secret, 1000), null);
  assert.equal(findToken(tokens, two.secret, Number.MAX_SAFE_INTEGER), two.token);
  for (const wrong of ['', one.token.sha256, `${one.secret} `, one.secret.toUpperCase()])
    assert.equal(findToken(tokens, wrong, 0), null);
  assert.equal(findToken([], one.secret, 0), null);
});

test('one of a name or tenant that cannot be is not made, and a sentence says why', () => {
  const wrong = { ...about, name: 'a/b', tenant: 'Bad!' };
  assert.throws(
    () => newToken(wrong),
    (error) =>
      error instanceof UsageError &&
      /^token a\/b: name must be 1 to 64 letters, .*; tenant must be 1 to 63 of a-z, 0-9, _ and -$/.test(
        error.message,
      ),
  );
});

test('what is written is read again', () => {
  const { token } = newToken(about);
  assert.deepEqual(parseTokens(Buffer.from(encodeTokens([token]))), { ok: true, value: [token] });
});

const { token } = newToken(about);
const faults: [what: string, bytes: Uint8Array, says: RegExp][] = [
  ['no JSON', Buffer.from('{'), /not JSON/],
  ['another version', bytesOf({ version: 2, tokens: [] }), /version/],
  ['an unknown field', bytesOf({ version: 1, tokens: [{ ...token, admin: true }] }), /admin/],
  ['no digest', bytesOf({ version: 1, tokens: [{ ...token, sha256: 'x' }] }), /sha256/],
  ['a tenant that is none', bytesOf({ version: 1, tokens: [{ ...token, tenant: 'A.B' }] }), /tenant/],
  ['a name twice', bytesOf({ version: 1, tokens: [token, token] }), /two tokens have one name/],
];
for (const [what, bytes, says] of faults)
  test(`a file with ${what} is none`, () => {
    const parsed = parseTokens(bytes);
    assert.ok(!parsed.ok);
    assert.match(parsed.detail, says);
  });
