/** How a job ended, as one value. */
import type { AuditRecord, JobCancelled, JobFinished, JobRejected } from '../platform/codec.ts';
import { OperationalError } from '../platform/errors.ts';
import { parseJobSubject, terminalKinds } from '../platform/topology.ts';
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

/** Why no result will come, or none that can be told; null while one may. */
export function faultOf({ record, event, fault }: Entry): OperationalError | null {
  if (fault !== null && terminalKinds.some((kind) => kind === record.kind))
    return new OperationalError(
      'UNREADABLE_RESULT',
      `job ${record.jobId} is ${record.kind}, but its record cannot be read: ${fault}`,
    );
  // A submission that no service could read becomes a dead letter, and its job gets no terminal event. (Not so for a
  // second submission of an id: the first one goes on.)
  if (event?.name !== 'JobDeadLettered') return null;
  const { subject, reason, detail, service } = event.value;
  if (parseJobSubject(subject)?.kind !== 'submitted' || reason === 'DUPLICATE_JOB') return null;
  return new OperationalError(reason, `the ${service} could not read the submission: ${detail}`);
}
