/** Which files say what may run: the trust store, the root key that it must be signed by, the operator's policy. */
import { join } from 'node:path';
import { z } from 'zod';

const text = z.string().min(1).nullable().default(null);

/** Part of the configuration of every process that decides about trust. */
export const trustShape = {
  SANDBUS_TRUST_STORE: text,
  SANDBUS_TRUST_ROOT: text,
  SANDBUS_POLICY: text,
};

export interface TrustFiles {
  readonly trustStore: string;
  /** File of the root's public key, or the key itself as PEM or Base64. */
  readonly root: string;
  readonly policy: string;
}

export function trustFilesOf(given: {
  readonly SANDBUS_STATE_DIR: string;
  readonly SANDBUS_TRUST_STORE: string | null;
  readonly SANDBUS_TRUST_ROOT: string | null;
  readonly SANDBUS_POLICY: string | null;
}): TrustFiles {
  const stateDir = given.SANDBUS_STATE_DIR;
  return {
    trustStore: given.SANDBUS_TRUST_STORE ?? join(stateDir, 'trust.json'),
    root: given.SANDBUS_TRUST_ROOT ?? join(stateDir, 'root.pub'),
    policy: given.SANDBUS_POLICY ?? join(stateDir, 'policy.json'),
  };
}
