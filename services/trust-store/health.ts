/** What a service that decides about trust says of its health: without a store or a policy it refuses everything. */
import type { HealthCheck } from '../platform/health.ts';
import type { WatchedFile } from '../platform/watched-file.ts';
import type { Policy } from '../trust/index.ts';
import type { TrustStoreKeeper } from './keeper.ts';

export function trustChecks(trust: TrustStoreKeeper, policy: WatchedFile<Policy>): readonly HealthCheck[] {
  return [
    () =>
      trust.latest.store === null
        ? `no usable trust store: ${trust.latest.problem?.detail ?? 'see the log'}`
        : null,
    () => (policy.current() === null ? 'no usable policy file: see the log' : null),
  ];
}
