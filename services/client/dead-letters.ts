/** Messages that no service could handle, as the ledger keeps them; and sending what was in one again. */
import type { JobDeadLettered, JobSubmitted } from '../platform/codec.ts';
import { decodeAs } from '../platform/codec.ts';
import { messageOf, UsageError } from '../platform/errors.ts';
import type { Bus } from '../platform/nats/bus.ts';
import { parseJobSubject, subjects } from '../platform/topology.ts';
import type { Entry } from './audit-read.ts';
import { uuidV7 } from './ids.ts';
import { publishSubmission } from './submission.ts';

export interface DeadLetter {
  /** Of the record that holds it. */
  readonly sequence: number;
  readonly recordedAtMs: number;
  readonly letter: JobDeadLettered;
}

/** The dead letter in a record of the ledger; null for any other. */
export function deadLetterIn({ record, event }: Entry): DeadLetter | null {
  if (event?.name !== 'JobDeadLettered') return null;
  const { tenantSequence: sequence, recordedAt } = record;
  return { sequence, recordedAtMs: recordedAt / 1000, letter: event.value };
}

export interface Replayed {
  readonly jobId: string;
  readonly what: 'submission' | 'cancel request';
}

/**
 * Sends it again: a cancel request as it was, everything else as a new job with the submission of the old one, since a
 * job id is used once. Throws UsageError when the submission cannot be read.
 */
export async function replay(
  bus: Bus,
  { letter }: DeadLetter,
  submission: Uint8Array | null,
): Promise<Replayed> {
  const kind = parseJobSubject(letter.subject)?.kind;
  if (kind === 'cancel-requested') {
    await bus.publish(letter.subject, letter.payload);
    return { jobId: letter.jobId, what: 'cancel request' };
  }
  const bytes = kind === 'submitted' ? letter.payload : submission;
  if (bytes === null)
    throw new UsageError(`the ledger has no submission of job ${letter.jobId} to send again`);
  const job: JobSubmitted = { ...readSubmission(bytes), jobId: uuidV7(), submittedAt: Date.now() * 1000 };
  if (job.tenant !== letter.tenant)
    throw new UsageError(`the submission names tenant ${job.tenant}, and came as one of ${letter.tenant}`);
  await publishSubmission(bus, job, {});
  return { jobId: job.jobId, what: 'submission' };
}

function readSubmission(bytes: Uint8Array): JobSubmitted {
  try {
    return decodeAs('JobSubmitted', bytes);
  } catch (error) {
    throw new UsageError(`this cannot be sent again, since it is no submission: ${messageOf(error)}`);
  }
}

/** The bytes with which a job was submitted. */
export const submissionIn = ({ record }: Entry): Uint8Array | null =>
  record.kind === 'submitted' && record.subject === subjects.job('submitted', record) ? record.payload : null;
