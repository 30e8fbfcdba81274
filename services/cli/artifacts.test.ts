import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { UsageError } from '../platform/errors.ts';
import { partsOf } from './artifacts.ts';

describe('the name of an artifact stays in the folder', () => {
  for (const name of ['a', 'a b/c', '..a', 'a..', '...', '-rf', 'ä/\\..'])
    it(`${JSON.stringify(name)} does`, () => assert.equal(partsOf(name).join('/'), name));
  for (const name of ['', '/', '/etc/passwd', '..', '../a', 'a/../../b', 'a//b', 'a/', './a', 'a/.', 'a\0b'])
    it(`${JSON.stringify(name)} is refused`, () => assert.throws(() => partsOf(name), UsageError));
});
