// For tests only: jobs that run already when the trust store changes.

import { ALICE, BOB, PLUGIN_SHA256, storedKey } from '../fixture.ts';
import type { TrustStoreContent } from '../trust-store.ts';

/** Name, whether the job goes on, the keys that counted when it started, and what the store says now. */
export const REVOCATIONS: readonly [string, boolean, string[], Partial<TrustStoreContent>][] = [
  ['goes on under the same store', true, [ALICE.keyId], {}],
  ['goes on when its store has expired', true, [ALICE.keyId], { expires: '2020-01-01T00:00:00Z' }],
  ['goes on when another key is revoked', true, [ALICE.keyId], { revokedKeys: [BOB.keyId] }],
  ['goes on when another file is revoked', true, [ALICE.keyId], { revokedDigests: ['0'.repeat(64)] }],
  ['goes on when the threshold rises', true, [ALICE.keyId], { threshold: 2 }],
  ['ends when its file is revoked', false, [ALICE.keyId], { revokedDigests: [PLUGIN_SHA256] }],
  ['ends when its key is revoked', false, [ALICE.keyId], { revokedKeys: [ALICE.keyId] }],
  ['ends when its key is no longer listed', false, [ALICE.keyId], { keys: [storedKey(BOB, 'Bob')] }],
  ['goes on with one signer of two', true, [ALICE.keyId, BOB.keyId], { revokedKeys: [ALICE.keyId] }],
  [
    'ends with one signer of two where two are needed',
    false,
    [ALICE.keyId, BOB.keyId],
    { threshold: 2, revokedKeys: [ALICE.keyId] },
  ],
  ['ends when all is revoked', false, [ALICE.keyId, BOB.keyId], { revokedKeys: [ALICE.keyId, BOB.keyId] }],
];
