/** What the ledger takes from a message without trusting its body: subject, headers, place in the stream. Pure. */
import { submitter } from '../platform/authorship.ts';
import { idOfMessage } from '../platform/event-keys.ts';
import { causeOf } from '../platform/events.ts';
import type { StreamMessage } from '../platform/nats/bus.ts';
import type { Cause } from '../platform/topology.ts';
import { eventId, headerNames, jobIn, noToken, parseJobSubject, serviceNames } from '../platform/topology.ts';
import { parseTraceparent } from '../platform/traceparent.ts';

/** Streams whose messages are events of the ledger. */
export const ledgerStreams = ['SUBMISSIONS', 'JOBS'] as const;

export interface MessageFacts {
  /** `-` where the subject has no valid token. */
  readonly tenant: string;
  readonly jobId: string;
  readonly kind: string;
  readonly eventId: string;
  /** True when the id is the publisher's: then the same id is the same event. Else it only names the place. */
  readonly idIsGiven: boolean;
  readonly signer: string;
  readonly signature: Uint8Array | null;
  readonly traceparent: string | null;
  readonly cause: Cause | null;
}

export function factsOf(message: StreamMessage): MessageFacts {
  const parsed = parseJobSubject(message.subject);
  const job = jobIn(parsed);
  const kind = parsed?.kind ?? kindOfStranger(message.subject);
  const id = givenId(message);
  const signature = message.headers[headerNames.signature];
  const traceparent = message.headers[headerNames.traceparent] ?? null;
  return {
    tenant: job.tenant,
    jobId: job.jobId,
    kind,
    eventId: id ?? eventId(message.stream === 'SUBMISSIONS' ? submitter : 'unknown', kind, message, job),
    idIsGiven: id !== null,
    signer: signerOf(message, id),
    signature: signature === undefined ? null : Buffer.from(signature, 'base64'),
    traceparent: parseTraceparent(traceparent) === null ? null : traceparent,
    cause: ledgerCause(message),
  };
}

/** True when the event belongs to a job that can be named. */
export const hasJob = (facts: { tenant: string; jobId: string }): boolean =>
  facts.tenant !== noToken && facts.jobId !== noToken;

/**
 * The event of the ledger that caused this one. A submitter's word on that counts nothing, and a cause lies before its
 * effect in a stream, so that following causes always ends.
 */
export function ledgerCause(message: StreamMessage): Cause | null {
  if (message.stream === 'SUBMISSIONS') return null;
  const cause = causeOf(message.headers);
  if (cause === null || !ledgerStreams.some((stream) => stream === cause.stream)) return null;
  return cause.stream === message.stream && cause.sequence >= message.sequence ? null : cause;
}

/** The kind of event that a subject names; its second token where it is none of ours. */
export const kindOf = (subject: string): string => parseJobSubject(subject)?.kind ?? kindOfStranger(subject);

function kindOfStranger(subject: string): string {
  const [first = noToken, second = noToken] = subject.split('.');
  return first === 'work' ? 'routed' : second;
}

/** A submitter may not choose the id: it could then suppress somebody else's event. */
function givenId(message: StreamMessage): string | null {
  return message.stream === 'SUBMISSIONS' ? null : idOfMessage(message.headers) || null;
}

function signerOf(message: StreamMessage, id: string | null): string {
  if (message.stream === 'SUBMISSIONS') return submitter;
  const author = id?.split(':', 1)[0];
  return serviceNames.find((service) => service === author) ?? 'unknown';
}
