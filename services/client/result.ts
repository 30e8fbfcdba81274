/** How a job ended, as one value. */
import type { AuditRecord, JobCancelled, JobFinished, JobRejected } from '../platform/codec.ts';
import { OperationalError } from '../platform/errors.ts';
import { parseJobSubject } from '../platform/topology.ts';
import type { Entry } from './audit-read.ts';

export type JobResult =
  | { readonly kind: 'finished'; readonly event: JobFinished; readonly record: AuditRecord }
  | { readonly kind: 'rejected'; readonly event: JobRejected; readonly record: AuditRecord }
  | { readonly kind: 'cancelled'; readonly event: JobCancelled; readonly record: AuditRecord };

/** The result that a record holds; null when it is not the one that ended its job. */
export function resultOf({ record, event }: Entry): JobResult | null {
  if (event?.name === 'JobFinished' && record.kind === 'finished')
    return { kind: 'finished', event: event.value, record };
  if (event?.name === 'JobRejected' && record.kind === 'rejected')
    return { kind: 'rejected', event: event.value, record };
  if (event?.name === 'JobCancelled' && record.kind === 'cancelled')
    return { kind: 'cancelled', event: event.value, record };
  return null;
}

/**
 * A submission that no service could read becomes a dead letter, and its job never gets a terminal event. (Not so for
 * a second submission of an id: the first one goes on.)
 */
export function unreadableSubmission({ event }: Entry): OperationalError | null {
  if (event?.name !== 'JobDeadLettered') return null;
  const { subject, reason, detail, service } = event.value;
  if (parseJobSubject(subject)?.kind !== 'submitted' || reason === 'DUPLICATE_JOB') return null;
  return new OperationalError(reason, `the ${service} could not read the submission: ${detail}`);
}
