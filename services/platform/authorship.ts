/** Whose word an event can be: by its subject, and by its content where the subject does not tell. Pure. */
import type { Outcome } from '../../schemas/generated/events.ts';
import { decodeAs } from './codec.ts';
import type { ServiceName } from './topology.ts';
import { isSubmission, mayBeSaidBy, parseJobSubject, serviceNames } from './topology.ts';

/** Who the ledger names as the author of what tenants publish: nobody signs that. */
export const submitter = 'submitter';

/** Null when the ledger can have recorded this subject as said by `signer`; else a sentence. */
export function authorFault(subject: string, signer: string): string | null {
  if (isSubmission(subject)) return signer === submitter ? null : `${subject} is a tenant's, not ${signer}'s`;
  const service = serviceNames.find((name) => name === signer);
  return service !== undefined && mayBeSaidBy(subject, service)
    ? null
    : `it is recorded as said by ${signer}, who may not say ${subject}`;
}

/** What a service may not say although it may use the subject; null when it may. */
export function contentFault(signer: ServiceName, subject: string, data: Uint8Array): string | null {
  if (signer !== 'router' || parseJobSubject(subject)?.kind !== 'finished' || outcomeOf(data) === lost)
    return null;
  return `${subject}: the router may only say that an executor is lost`;
}

const lost: Outcome = 'executor_lost';

function outcomeOf(data: Uint8Array): Outcome | null {
  try {
    return decodeAs('JobFinished', data).outcome;
  } catch {
    return null;
  }
}
