import { commonShape, loadConfig, wholeNumber } from '../platform/config.ts';

export interface RouterConfig {
  /** A started job is lost when its entry has not changed for this long. */
  readonly leaseMs: number;
  /** What executors run: x86_64 or aarch64. */
  readonly machine: string;
}

export function loadRouterConfig(): RouterConfig {
  const config = loadConfig({ ...commonShape, SANDBUS_LEASE_MS: wholeNumber(6000).default(15_000) });
  return Object.freeze({
    leaseMs: config.SANDBUS_LEASE_MS,
    machine: process.arch === 'arm64' ? 'aarch64' : 'x86_64',
  });
}
