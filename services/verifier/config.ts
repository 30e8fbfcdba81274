import { join } from 'node:path';
import { z } from 'zod';
import { commonShape, loadConfig } from '../platform/config.ts';

export interface VerifierConfig {
  readonly trustStoreFile: string;
  readonly policyFile: string;
}

export function loadVerifierConfig(): VerifierConfig {
  const config = loadConfig({
    ...commonShape,
    SANDBUS_TRUST_STORE: z.string().min(1).nullable().default(null),
    SANDBUS_POLICY: z.string().min(1).nullable().default(null),
  });
  return Object.freeze({
    trustStoreFile: config.SANDBUS_TRUST_STORE ?? join(config.SANDBUS_STATE_DIR, 'trust.json'),
    policyFile: config.SANDBUS_POLICY ?? join(config.SANDBUS_STATE_DIR, 'policy.json'),
  });
}
