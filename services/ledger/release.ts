/** Which messages may leave the bus once a message is committed, pure. An event leaves when its job has ended. */
import { badSignature } from '../platform/events.ts';
import type { StreamMessage } from '../platform/nats/bus.ts';
import type { Cause } from '../platform/topology.ts';
import { consumers } from '../platform/topology.ts';
import type { MessageFacts } from './message-facts.ts';
import { deadLetterReason } from './projection.ts';
import type { Deletion, JobRow } from './store.ts';

/**
 * The consumer of SUBMISSIONS whose turn at this message must be over: a duplicate submission still becomes a dead
 * letter, and a late cancel is still answered.
 */
function consumerOf(stream: string, subject: string): string | null {
  if (stream !== 'SUBMISSIONS') return null;
  return subject.startsWith('job.submitted.') ? consumers.verifier.durable : consumers.routerCancels.durable;
}

/** `job` is as it is after the message; `holds` says of a place whether its message is committed. */
export function releaseOf(
  { message, facts }: { message: StreamMessage; facts: MessageFacts },
  job: JobRow | null,
  holds: (cause: Cause) => boolean,
): Deletion[] {
  const { stream, sequence, subject } = message;
  const { kind, cause } = facts;
  if (kind === 'dead-lettered') {
    // Committed before this one or no event at all, and kept whole in the dead letter: nobody needs it any more.
    const kept = cause !== null && (holds(cause) || isOfForged(message, facts));
    return [{ stream, sequence, awaits: null }, ...(kept ? [{ ...cause, awaits: null }] : [])];
  }
  const nobodysJob = job === null;
  const late = job?.terminalSequence != null;
  // A cancel for a job that was never submitted has no end to wait for.
  const pointless = kind === 'cancel-requested' && job?.state == null;
  return nobodysJob || late || pointless ? [{ stream, sequence, awaits: consumerOf(stream, subject) }] : [];
}

/** A dead letter of our own about what nobody may say. It is never committed as an event. */
function isOfForged(message: StreamMessage, facts: MessageFacts): boolean {
  return facts.signer === 'audit' && deadLetterReason(message.data) === badSignature;
}
