// What a job gets: never more than the signature and the policy allow, and no more than usual unless it asks.

import type { Ceilings } from './policy.ts';
import { accept, type Checked, type Rejection, reject } from './reasons.ts';
import type { SignedLimits } from './statement.ts';

const MIB = 1024 * 1024;

/** What a job gets that asks for nothing, where signature and policy allow it; the launcher has the same defaults. */
export const DEFAULT_LIMITS = Object.freeze({
  memoryBytes: 256 * MIB,
  cpuMillis: 1000,
  wallMs: 10_000,
  cpuTimeMs: null,
  processes: 128,
  outputBytes: MIB,
  tmpBytes: 64 * MIB,
});

/** The limits under which a plugin runs. `cpuTimeMs` is null where only wall clock and CPU share bound it. */
export type EffectiveLimits = {
  readonly memoryBytes: number;
  readonly cpuMillis: number;
  readonly wallMs: number;
  readonly cpuTimeMs: number | null;
  readonly processes: number;
  readonly outputBytes: number;
  readonly tmpBytes: number;
};

type LimitName = keyof EffectiveLimits;

/** What the job asks for; null or absent means that it takes what it gets. */
export type RequestedLimits = { readonly [field in LimitName]?: number | null };

type Bounds = { readonly signed: SignedLimits; readonly ceilings: Ceilings; readonly tenant: string };

/** The limits of a job, or a refusal that names the field, what was asked and what is allowed. */
export function effectiveLimits(requested: RequestedLimits, bounds: Bounds): Checked<EffectiveLimits> {
  const { signed, ceilings, tenant } = bounds;
  const effective: { [field in LimitName]: number | null } = { ...DEFAULT_LIMITS };
  for (const field of Object.keys(DEFAULT_LIMITS) as LimitName[]) {
    const asked = requested[field] ?? null;
    const signedMost = field in signed ? signed[field as keyof SignedLimits] : null;
    const refusal =
      checkAsked(field, asked, signedMost, 'its signature') ??
      checkAsked(field, asked, ceilings[field], `the policy of tenant ${tenant}`);
    if (refusal !== null) return refusal;
    effective[field] = asked ?? least([DEFAULT_LIMITS[field], signedMost, ceilings[field]]);
  }
  return accept(effective as EffectiveLimits);
}

/** Refuses a number that is no number of anything, or more than the most that is allowed. */
export function checkAsked(
  field: string,
  asked: number | null,
  most: number | null,
  allowedBy: string,
): Rejection | null {
  if (asked === null) return null;
  if (!Number.isSafeInteger(asked) || asked < 1) {
    return reject(
      'MALFORMED',
      `${field}: the job asks for ${asked}, which is not a whole number of at least 1`,
    );
  }
  if (most !== null && asked > most) {
    return reject('LIMIT_EXCEEDED', `${field}: the job asks for ${asked}, ${allowedBy} allows ${most}`);
  }
  return null;
}

function least(numbers: readonly (number | null)[]): number | null {
  const given = numbers.filter((number) => number !== null);
  return given.length === 0 ? null : Math.min(...given);
}
