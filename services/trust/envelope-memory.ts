// Envelopes that were found authentic, remembered so that a plugin that runs often is verified once. Time, tenant and
// limits are judged anew for every job; only what depends on the bytes and the trust store alone is kept.

import { createHash } from 'node:crypto';
import { type AuthenticStatement, authenticate } from './authenticate.ts';
import type { Checked } from './reasons.ts';
import type { TrustStore } from './trust-store.ts';

export type EnvelopeMemory = {
  authenticate(envelopeBytes: Uint8Array, store: TrustStore): Checked<AuthenticStatement>;
};

export function createEnvelopeMemory(maxEntries = 1024): EnvelopeMemory {
  const remembered = new Map<string, Checked<AuthenticStatement>>();
  return {
    authenticate(envelopeBytes, store) {
      const key = `${createHash('sha256').update(envelopeBytes).digest('base64')} ${store.digest}`;
      const result = remembered.get(key) ?? authenticate(envelopeBytes, store);
      // Refusals are not kept: strangers could push everything else out with them.
      if (!result.ok) return result;
      // Taken out and put back, so that the first entry is always the one that was not used for longest.
      remembered.delete(key);
      remembered.set(key, result);
      const oldest = remembered.keys().next().value;
      if (remembered.size > maxEntries && oldest !== undefined) remembered.delete(oldest);
      return result;
    },
  };
}
