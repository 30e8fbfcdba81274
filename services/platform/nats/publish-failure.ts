/** What a publish that failed means. */
import { messageOf, OperationalError } from '../errors.ts';
import { isConflict, isDiskFull, isFull, isNoResponders, isTooLarge } from './failures.ts';

export function publishFailure(subject: string, cause: unknown): OperationalError {
  const hint = isNoResponders(cause) ? 'no stream takes this subject' : messageOf(cause);
  return new OperationalError(codeOf(cause), `publish ${subject}: ${hint}`, { cause });
}

/** A stream that is full by its limits will have room when jobs have ended; a full disk is somebody's to mend. */
function codeOf(cause: unknown): string {
  if (isDiskFull(cause)) return 'PUBLISH_FAILED';
  if (isFull(cause)) return 'BUS_FULL';
  if (isConflict(cause)) return 'CONFLICT';
  return isTooLarge(cause) ? 'TOO_LARGE' : 'PUBLISH_FAILED';
}
