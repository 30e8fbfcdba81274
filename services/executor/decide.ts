/**
 * What to do with a job, given its entry in KV and the facts: pure, no I/O, no clock of its own.
 *
 * An executor that takes a job over from a lost one leaves a `started` entry in that state, with itself as executor:
 * an entry never goes back, and the attempt is counted up only when user code is about to start.
 */
import type { JobRouted } from '../../schemas/generated/events.ts';
import type { JobEntry } from '../platform/job-state.ts';
import type { Rejection, RejectReason, TrustDecision, TrustRequest } from '../trust/index.ts';
import type { TrustState } from '../trust-store/keeper.ts';

export interface ClaimFacts {
  readonly self: string;
  /** This process made the newest change to the entry and works on it no more: a try that failed before the start. */
  readonly leftByUs: boolean;
  /** The entry stood still for a whole lease. */
  readonly leaseLost: boolean;
  readonly nowMs: number;
}

export type ClaimAction =
  /** The job has ended: its terminal event goes out again, and the message is done with. */
  | { readonly kind: 'republish' }
  /** Take it, by compare-and-set to this entry. */
  | { readonly kind: 'claim'; readonly entry: JobEntry }
  | { readonly kind: 'wait'; readonly code: string; readonly message: string };

export function decideClaim(entry: JobEntry, facts: ClaimFacts): ClaimAction {
  if (entry.state === 'ended') return { kind: 'republish' };
  const free = entry.state === 'open' || facts.leftByUs || facts.leaseLost;
  if (!free)
    return { kind: 'wait', code: 'HELD_ELSEWHERE', message: `executor ${entry.executor} has the job` };
  if (entry.state === 'started' && !mayStartAgain(entry, facts.nowMs)) {
    const message = `executor ${entry.executor} was lost in attempt ${entry.attempt} of ${entry.maxAttempts}; the router ends the job`;
    return { kind: 'wait', code: 'EXECUTOR_LOST', message };
  }
  return { kind: 'claim', entry: claimedBy(facts.self, entry) };
}

/** The router ends, as executor-lost, those for which this says no. */
function mayStartAgain(entry: JobEntry, nowMs: number): boolean {
  return entry.attempt < entry.maxAttempts && entry.cancel === null && nowMs * 1000 <= entry.deadline;
}

function claimedBy(self: string, entry: JobEntry): JobEntry {
  const state = entry.state === 'open' ? 'claimed' : entry.state;
  return { ...entry, state, executor: self, beat: entry.beat + 1 };
}

/** The entry that says: user code starts now. */
export function startedEntry(entry: JobEntry): JobEntry {
  return { ...entry, state: 'started', attempt: entry.attempt + 1, beat: entry.beat + 1 };
}

/** Whether `now` is still the entry that we hold: nobody but its lease-holder counts beats or attempts. */
export function isStillHeld(now: JobEntry, held: JobEntry): boolean {
  const sameHolder = now.executor === held.executor && now.attempt === held.attempt;
  return now.state === held.state && sameHolder && (now.beat === held.beat || now.beat === held.beat + 1);
}

export interface StartFacts {
  readonly nowMs: number;
  readonly trust: TrustDecision;
}

/** The last look before user code starts: null lets it start. */
export function refuseStart(entry: JobEntry, facts: StartFacts): Rejection | null {
  if (!facts.trust.ok) return facts.trust;
  const deadlineMs = entry.deadline / 1000;
  if (entry.attempt === 0 && facts.nowMs > deadlineMs) {
    const detail = `the job had to start by ${new Date(deadlineMs).toISOString()}`;
    return { ok: false, reason: 'DEADLINE_PASSED', detail };
  }
  return null;
}

/** The question that verifier and executor both ask, as it stands in a routed job. */
export function trustRequestOf(job: JobRouted): TrustRequest {
  const { limits, requiresGpu, network, maxAttempts } = job.spec;
  return {
    tenant: job.tenant,
    pluginName: job.plugin.name,
    pluginSha256: job.plugin.sha256,
    envelope: job.envelope,
    requested: { limits, requiresGpu, network, maxAttempts },
    admittedUnder: { version: job.trustStoreVersion, digest: job.trustStoreDigest },
  };
}

export interface Capabilities {
  readonly memoryBudgetBytes: number;
  readonly allowHostNetwork: boolean;
  readonly trust: TrustState;
}

/** What keeps this executor, and perhaps not another, from running a job. */
export interface Unfit {
  /** After several deliveries this is the reason; null waits for as long as the job's deadline allows. */
  readonly reason: RejectReason | null;
  readonly code: string;
  readonly message: string;
}

export function unfitFor(job: JobRouted, here: Capabilities): Unfit | null {
  const behind = whyBehind(job, here.trust);
  if (behind !== null) {
    const message = `${behind}: bring the newest trust store file to this machine`;
    return { reason: null, code: 'TRUST_STORE_OUTDATED', message };
  }
  const { memoryBytes } = job.spec.limits;
  if (memoryBytes > here.memoryBudgetBytes) {
    const message = `the job asks for ${memoryBytes} bytes of memory, this executor gives its jobs ${here.memoryBudgetBytes} (SANDBUS_MEMORY_BUDGET)`;
    return { reason: 'LIMIT_EXCEEDED', code: 'MEMORY_BUDGET', message };
  }
  if (job.spec.network === 'host' && !here.allowHostNetwork) {
    const message =
      'the job asks for the network of the host, and this executor does not consent (SANDBUS_ALLOW_HOST_NETWORK=1)';
    return { reason: 'LIMIT_EXCEEDED', code: 'HOST_NETWORK', message };
  }
  return null;
}

/** A store that is older than one in use elsewhere waits for the newer file; any other fault of the store is a refusal. */
function whyBehind(job: JobRouted, { store, problem }: TrustState): string | null {
  if (store === null) return problem?.reason === 'TRUST_STORE_OUTDATED' ? problem.detail : null;
  return store.version < job.trustStoreVersion
    ? `trust store version ${store.version} is older than version ${job.trustStoreVersion}, which admitted the job`
    : null;
}

/** Why a running job is to be ended before its time. */
export type StopReason =
  | { readonly kind: 'cancel'; readonly requestedBy: string; readonly reason: string }
  | { readonly kind: 'shutdown' }
  | { readonly kind: 'lease-lost'; readonly message: string }
  | { readonly kind: 'revoked'; readonly message: string };
