/** What the server's refusals mean. Codes: nats-server `server/errors.json`. */
import { NatsError } from 'nats';

const wrongLastSequence = 10071;
const tooLarge = 10054;
const streamFull = new Set([10077, 10047, 10023]);
const otherStream = 10060;
const notFound = new Set([10037, 10014, 10043, 10059]);

function apiCode(error: unknown): number | undefined {
  return error instanceof NatsError ? error.api_error?.err_code : undefined;
}

/** Another writer was first: an expected revision or last sequence does not hold any more. */
export function isConflict(error: unknown): boolean {
  return apiCode(error) === wrongLastSequence;
}

/** The stream refuses for lack of room (10077), or the server has no storage left (10047, 10023). */
export function isFull(error: unknown): boolean {
  return streamFull.has(apiCode(error) ?? 0);
}

/** The disk of the server is full, rather than a stream by its limits (seen on 2.10 as a failure to store, 10077). */
export function isDiskFull(error: unknown): boolean {
  return error instanceof NatsError && /no space left/.test(error.api_error?.description ?? error.message);
}

/** The message wanted to go into another stream than the one that takes its subject. */
export function isOtherStream(error: unknown): boolean {
  return apiCode(error) === otherStream;
}

/** The message is larger than the stream takes. */
export function isTooLarge(error: unknown): boolean {
  return apiCode(error) === tooLarge;
}

/** No such message (10037 to a read, 10043 to a deletion), consumer or stream. */
export function isNotFound(error: unknown): boolean {
  if (notFound.has(apiCode(error) ?? 0)) return true;
  return error instanceof NatsError && error.code === '404';
}

/** A pull that found nothing, or ran out of time: no fault. */
export function isEmptyPull(error: unknown): boolean {
  return error instanceof NatsError && (error.code === '404' || error.code === '408');
}

/** Nobody answers requests on this subject. */
export function isNoResponders(error: unknown): boolean {
  return error instanceof NatsError && error.code === '503';
}
