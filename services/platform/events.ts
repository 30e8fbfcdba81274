/** Publishing and reading events: subject, id, cause and trace context in one place. */
import type { EventName, Events } from './codec.ts';
import { decodeAs, encode } from './codec.ts';
import { PoisonError } from './errors.ts';
import type { Bus, Headers, Published, StreamMessage } from './nats/bus.ts';
import type { Cause, JobRef } from './topology.ts';
import { headerNames, isJobId, isTenant, parseJobSubject } from './topology.ts';

/** An event ready to go out; the arbiter in KV keeps these bytes, and a retry sends the same. */
export interface OutgoingEvent {
  readonly subject: string;
  readonly id: string;
  readonly data: Uint8Array;
  readonly cause: Cause;
  readonly traceparent: string | null;
}

export function outgoing<N extends EventName>(
  name: N,
  value: Events[N],
  about: { subject: string; id: string; cause: Cause; traceparent: string | null },
): OutgoingEvent {
  return { ...about, data: encode(name, value) };
}

/** Publishes with the id as Nats-Msg-Id, so that a second publish of the same event is dropped. */
export function publishEvent(bus: Pick<Bus, 'publish'>, event: OutgoingEvent): Promise<Published> {
  return bus.publish(event.subject, event.data, { id: event.id, headers: eventHeaders(event) });
}

function eventHeaders(event: OutgoingEvent): Headers {
  return {
    [headerNames.cause]: `${event.cause.stream}:${event.cause.sequence}`,
    ...(event.traceparent === null ? {} : { [headerNames.traceparent]: event.traceparent }),
  };
}

/** The message that caused this one; null for a submission. */
export function causeOf(headers: Headers): Cause | null {
  const [, stream, sequence] = /^([A-Z]+):(\d+)$/.exec(headers[headerNames.cause] ?? '') ?? [];
  return stream === undefined ? null : { stream, sequence: Number(sequence) };
}

/** A delivery as a cause of later events. */
export const asCause = (message: StreamMessage): Cause => ({
  stream: message.stream,
  sequence: message.sequence,
});

/**
 * Decodes a delivery as `name` and checks that its subject names the same job as its body. Throws PoisonError:
 * those of decoding, and SUBJECT_MISMATCH.
 */
export function readJobEvent<N extends EventName>(name: N, delivery: StreamMessage): Events[N] & JobRef {
  const event = decodeAs(name, delivery.data) as Events[N] & JobRef;
  const subject = parseJobSubject(delivery.subject);
  if (subject === null || !isTenant(subject.tenant) || !isJobId(subject.jobId))
    throw new PoisonError(
      'SUBJECT_MISMATCH',
      `${delivery.subject} needs a tenant (a-z 0-9 _ -, at most 63) and a job id (UUIDv7, lower case)`,
    );
  if (subject.tenant !== event.tenant || subject.jobId !== event.jobId)
    throw new PoisonError(
      'SUBJECT_MISMATCH',
      `${delivery.subject} carries an event of ${event.tenant}.${event.jobId}`,
    );
  return event;
}
