import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { REVOCATIONS } from './attacks/revocations.ts';
import { PLUGIN_SHA256, store } from './fixture.ts';
import { findRevocation } from './index.ts';

describe('a job that runs already', () => {
  for (const [name, goesOn, keyIds, changes] of REVOCATIONS) {
    test(name, () => {
      const revocation = findRevocation({ pluginSha256: PLUGIN_SHA256, keyIds }, store(changes));
      assert.equal(revocation?.reason ?? null, goesOn ? null : 'REVOKED', revocation?.detail);
    });
  }
});
