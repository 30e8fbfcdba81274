/** Publishing and reading events: subject, id, cause and trace context in one place. */
import type { EventName, Events } from './codec.ts';
import { decodeAs, encode, unknownSchema } from './codec.ts';
import { OperationalError, PoisonError } from './errors.ts';
import type { EventIdentity, Signable, Verdict } from './event-keys.ts';
import type { Bus, Delivery, Headers, Published, StreamMessage } from './nats/bus.ts';
import type { Cause, JobRef, ServiceName } from './topology.ts';
import { headerNames, isJobId, isTenant, parseJobSubject } from './topology.ts';

/** An event ready to go out; the arbiter in KV keeps these bytes, and a retry sends the same. */
export interface OutgoingEvent {
  readonly subject: string;
  readonly id: string;
  readonly data: Uint8Array;
  readonly cause: Cause;
  readonly traceparent: string | null;
  /** Of its author; null until it is signed, which is done once. */
  readonly signature: string | null;
}

type Speaker = Pick<Bus, 'identity'>;
export type Publisher = Pick<Bus, 'publish' | 'identity'>;

/** The event as its author, who is whoever speaks on `bus`, stands by it. */
export function signed(bus: Speaker, event: OutgoingEvent): OutgoingEvent & { readonly signature: string } {
  return { ...event, signature: event.signature ?? identityOf(bus).sign(event) };
}

function identityOf(bus: Speaker): EventIdentity {
  if (bus.identity === null)
    throw new Error('this connection has no event key: it may not speak as a service');
  return bus.identity;
}

export function outgoing<N extends EventName>(
  name: N,
  value: Events[N],
  about: { subject: string; id: string; cause: Cause; traceparent: string | null },
): OutgoingEvent {
  return { ...about, data: encode(name, value), signature: null };
}

/** Publishes with the id as Nats-Msg-Id, so that a second publish of the same event is dropped. */
export function publishEvent(bus: Publisher, event: OutgoingEvent): Promise<Published> {
  return bus.publish(event.subject, event.data, { id: event.id, headers: eventHeaders(signed(bus, event)) });
}

/** For what is published under no Nats-Msg-Id: the headers with its id and its signature. */
export async function signedHeaders(bus: Bus, event: Signable): Promise<Headers> {
  return { [headerNames.eventId]: event.id, [headerNames.signature]: await identityOf(bus).signAside(event) };
}

/** Publishes bytes that are signed but no event of a job: log chunks and spans. */
export function publishSigned(bus: Bus, subject: string, id: string, data: Uint8Array): Promise<Published> {
  const signature = identityOf(bus).sign({ subject, id, data });
  return bus.publish(subject, data, { id, headers: { [headerNames.signature]: signature } });
}

function eventHeaders(event: OutgoingEvent & { readonly signature: string }): Headers {
  return {
    [headerNames.signature]: event.signature,
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

/** So often a message is delivered before the key of its signature, unknown here, counts as nobody's. */
const newKeyDeliveries = 4;

/**
 * Checks who says this, before anything of it is decoded. Throws PoisonError BAD_EVENT_SIGNATURE. A key that is not
 * known may be a new one whose keyring comes later than its first event, so for a few seconds that is an
 * OperationalError; without a keyring it always is.
 */
export function checkSigned(bus: Bus, message: FromStream): ServiceName {
  return signerIn(identityOf(bus).check(message), message);
}

/** The same, with the arithmetic on another thread; `check` is told who it was. */
export function checkSignedAside(
  bus: Bus,
  message: FromStream,
  check: (signer: ServiceName) => void,
): Promise<void> {
  return identityOf(bus)
    .checkAside(message)
    .then((verdict) => check(signerIn(verdict, message)));
}

function signerIn(verdict: Verdict, message: FromStream): ServiceName {
  if (verdict.ok) return verdict.signer;
  const { fault, detail } = verdict;
  if (fault === 'no-keyring') throw new OperationalError('NO_SERVICE_KEYS', detail, { retryMs: 5000 });
  if (fault === 'unknown-key' && (message.deliveryCount ?? 0) < newKeyDeliveries)
    throw new OperationalError('UNKNOWN_EVENT_KEY', detail);
  throw new PoisonError(badSignature, `${message.subject}: ${detail}`);
}

/** A delivery, or a message that was read from its stream. */
export type FromStream = StreamMessage & Partial<Pick<Delivery, 'deliveryCount'>>;

/** Reason of the dead letters of events that are not by who may say them. */
export const badSignature = 'BAD_EVENT_SIGNATURE';

/**
 * As readJobEvent, for what services say: signature first. What a service has signed is no garbage: where its schema is not
 * known, a newer version wrote it, and this one is upgraded soon. Throws OperationalError NEWER_SCHEMA then.
 */
export function readServiceEvent<N extends EventName>(
  bus: Bus,
  name: N,
  message: FromStream,
): Events[N] & JobRef {
  checkSigned(bus, message);
  try {
    return readJobEvent(name, message);
  } catch (error) {
    if (!(error instanceof PoisonError) || error.code !== unknownSchema) throw error;
    const detail = `${message.subject} was written by a newer version: upgrade this service (${error.message})`;
    throw new OperationalError('NEWER_SCHEMA', detail, { retryMs: 5000 });
  }
}

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
