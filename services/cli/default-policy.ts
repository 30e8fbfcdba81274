/** The policy that a first `sandbus up` writes: what one machine gives to anybody whose plugins are trusted. */
import type { PolicyContent } from '../trust/index.ts';

const gibibyte = 1024 ** 3;

export const defaultPolicy: PolicyContent = {
  default: {
    memoryBytes: 2 * gibibyte,
    cpuMillis: 2000,
    wallMs: 3_600_000,
    cpuTimeMs: null,
    processes: 512,
    outputBytes: 64 * 1024 * 1024,
    tmpBytes: gibibyte,
    network: false,
    gpu: true,
    concurrency: 64,
    maxAttempts: 5,
  },
  tenants: {},
};
