// The operator's policy: what a tenant's jobs may use at most, whatever was signed.

import { createHash } from 'node:crypto';
import { z } from 'zod';
import { parseDocument, positiveInteger, tenantName } from './formats.ts';
import { accept, type Checked } from './reasons.ts';

export const MAX_POLICY_BYTES = 1024 * 1024;

const ceilings = z.strictObject({
  memoryBytes: positiveInteger,
  cpuMillis: positiveInteger,
  wallMs: positiveInteger,
  /** Processor time of the whole process tree; null leaves it to wall clock and CPU share. */
  cpuTimeMs: positiveInteger.nullable(),
  processes: positiveInteger,
  outputBytes: positiveInteger,
  tmpBytes: positiveInteger,
  /** Whether jobs may use the network of the host. */
  network: z.boolean(),
  gpu: z.boolean(),
  /** Jobs of the tenant that run at once. */
  concurrency: positiveInteger,
  maxAttempts: positiveInteger,
});

const policyShape = z.strictObject({
  default: ceilings,
  /** What differs for single tenants; fields that are not given are those of `default`. */
  tenants: z.record(tenantName, ceilings.partial()).default({}),
});

export type Ceilings = Readonly<z.infer<typeof ceilings>>;
export type PolicyContent = z.input<typeof policyShape>;

export type Policy = {
  readonly default: Ceilings;
  readonly tenants: ReadonlyMap<string, Ceilings>;
  /** SHA-256 of the file's exact bytes, in hex. */
  readonly digest: string;
};

/** Reads the policy file. Unknown fields are errors, so that a misspelt ceiling is not a missing one. */
export function parsePolicy(bytes: Uint8Array): Checked<Policy> {
  const bounds = { maxBytes: MAX_POLICY_BYTES, maxDepth: 4, maxValues: 50_000 };
  const document = parseDocument(bytes, bounds, policyShape, 'policy');
  if (!document.ok) return document;
  const { default: fallback, tenants } = document.value;
  const merged = Object.entries(tenants).map(([tenant, own]): [string, Ceilings] => [
    tenant,
    ceilings.parse({ ...fallback, ...own }),
  ]);
  const digest = createHash('sha256').update(bytes).digest('hex');
  return accept({ default: fallback, tenants: new Map(merged), digest });
}

/** The ceilings that hold for a tenant. */
export function ceilingsOf(policy: Policy, tenant: string): Ceilings {
  return policy.tenants.get(tenant) ?? policy.default;
}

/** How many jobs of a tenant may be under way at one time; null, no limit, while there is no policy. */
export const concurrencyOf = (policy: Policy | null, tenant: string): number | null =>
  policy === null ? null : ceilingsOf(policy, tenant).concurrency;

/** Writes a policy file; refuses what could not be read back. */
export function encodePolicy(content: PolicyContent): Checked<Uint8Array> {
  const bytes = new Uint8Array(Buffer.from(`${JSON.stringify(content, null, 2)}\n`));
  const parsed = parsePolicy(bytes);
  return parsed.ok ? accept(bytes) : parsed;
}
