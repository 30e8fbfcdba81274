/** Which messages are events: those of JOBS that are signed by a service that may say such a thing. */
import { contentFault } from '../platform/authorship.ts';
import { OperationalError, PoisonError } from '../platform/errors.ts';
import type { FromStream } from '../platform/events.ts';
import { badSignature, checkSignedAside } from '../platform/events.ts';
import type { Bus, StreamMessage } from '../platform/nats/bus.ts';
import type { Cause } from '../platform/topology.ts';
import { parseJobSubject } from '../platform/topology.ts';

/** Throws PoisonError BAD_EVENT_SIGNATURE: the message is then kept in a dead letter, and is no event. */
export function checkEvent(bus: Bus, message: FromStream): Promise<void> {
  if (message.stream === 'SUBMISSIONS') return nothingToCheck;
  return checkSignedAside(bus, message, (signer) => {
    const fault = contentFault(signer, message.subject, message.data);
    if (fault !== null) throw new PoisonError(badSignature, fault);
  });
}

const nothingToCheck = Promise.resolve();

/** The message that caused `effect`; null when it is gone, or is no event and stands in its dead letter alone. */
export async function fetchCause(
  bus: Pick<Bus, 'messageAt' | 'identity'>,
  cause: Cause,
  effect: StreamMessage,
): Promise<StreamMessage | null> {
  const message = await bus.messageAt(cause.stream, cause.sequence);
  if (message === null || message.stream === 'SUBMISSIONS') return message;
  const verdict = bus.identity?.check(message);
  if (verdict?.ok === true)
    return contentFault(verdict.signer, message.subject, message.data) === null ? message : null;
  if (verdict?.fault === 'forged' || parseJobSubject(effect.subject)?.kind === 'dead-lettered') return null;
  throw new OperationalError('UNKNOWN_EVENT_KEY', verdict?.detail ?? 'this connection knows no keys');
}
