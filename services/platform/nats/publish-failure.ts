/** What a publish that failed means. */
import { messageOf, OperationalError } from '../errors.ts';
import { isConflict, isDiskFull, isFull, isNoResponders, isTooLarge } from './failures.ts';

export function publishFailure(subject: string, cause: unknown): OperationalError {
  const hint = isNoResponders(cause) ? 'no stream takes this subject' : messageOf(cause);
  return new OperationalError(codeOf(cause), `publish ${subject}: ${hint}`, { cause });
}

/** A full disk is a trouble, a stream that is full by its limits is none. */
export function isTrouble(cause: unknown, failure: OperationalError): boolean {
  return failure.code === 'PUBLISH_FAILED' || isDiskFull(cause);
}

function codeOf(cause: unknown): string {
  if (isFull(cause)) return 'BUS_FULL';
  if (isConflict(cause)) return 'CONFLICT';
  return isTooLarge(cause) ? 'TOO_LARGE' : 'PUBLISH_FAILED';
}
