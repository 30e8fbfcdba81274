// What happens to a job that was trusted when it started and runs still. Its dates no longer matter; a revocation does.

import { type Rejection, reject } from './reasons.ts';
import type { TrustStore } from './trust-store.ts';

/** What a decision left behind about a job that was allowed to run. */
export type TrustedRun = {
  readonly pluginSha256: string;
  /** The keys that counted when it was allowed. */
  readonly keyIds: readonly string[];
};

/**
 * Whether a store takes the permission back; null means that the job may go on. A key that is revoked or no longer
 * listed does not count any more; the rest must still be enough owners.
 */
export function findRevocation(run: TrustedRun, store: TrustStore): Rejection | null {
  if (store.revokedDigests.has(run.pluginSha256)) {
    const detail = `the file with SHA-256 ${run.pluginSha256} is revoked in trust store version ${store.version}`;
    return reject('REVOKED', detail);
  }
  const standing = store.keys.filter(
    ({ keyId }) => run.keyIds.includes(keyId) && !store.revokedKeys.has(keyId),
  );
  const lost = run.keyIds.filter((keyId) => !standing.some((key) => key.keyId === keyId));
  if (lost.length === 0) return null;
  if (new Set(standing.map(({ owner }) => owner)).size >= store.threshold) return null;
  return reject(
    'REVOKED',
    `trust store version ${store.version} no longer trusts key ${lost.join(', key ')}`,
  );
}
