/** Which messages are events: those of JOBS that are signed by a service that may say such a thing. */
import type { Outcome } from '../../schemas/generated/events.ts';
import { decodeAs } from '../platform/codec.ts';
import { OperationalError, PoisonError } from '../platform/errors.ts';
import type { FromStream } from '../platform/events.ts';
import { badSignature, checkSignedAside } from '../platform/events.ts';
import type { Bus, StreamMessage } from '../platform/nats/bus.ts';
import type { Cause, ServiceName } from '../platform/topology.ts';
import { parseJobSubject } from '../platform/topology.ts';

/** Throws PoisonError BAD_EVENT_SIGNATURE: the message is then kept in a dead letter, and is no event. */
export function checkEvent(bus: Bus, message: FromStream): Promise<void> {
  if (message.stream === 'SUBMISSIONS') return nothingToCheck;
  return checkSignedAside(bus, message, (signer) => {
    if (!maySay(signer, message))
      throw new PoisonError(
        badSignature,
        `${message.subject}: the router may only say that an executor is lost`,
      );
  });
}

const nothingToCheck = Promise.resolve();

/** What the subject alone does not tell. */
function maySay(signer: ServiceName, message: StreamMessage): boolean {
  return signer !== 'router' || kindOf(message) !== 'finished' || outcomeOf(message) === lost;
}

const lost: Outcome = 'executor_lost';

const kindOf = ({ subject }: StreamMessage): string | undefined => parseJobSubject(subject)?.kind;

function outcomeOf({ data }: StreamMessage): Outcome | null {
  try {
    return decodeAs('JobFinished', data).outcome;
  } catch {
    return null;
  }
}

/** The message that caused `effect`; null when it is gone, or is no event and stands in its dead letter alone. */
export async function fetchCause(
  bus: Pick<Bus, 'messageAt' | 'identity'>,
  cause: Cause,
  effect: StreamMessage,
): Promise<StreamMessage | null> {
  const message = await bus.messageAt(cause.stream, cause.sequence);
  if (message === null || message.stream === 'SUBMISSIONS') return message;
  const verdict = bus.identity?.check(message);
  if (verdict?.ok === true) return maySay(verdict.signer, message) ? message : null;
  if (verdict?.fault === 'forged' || kindOf(effect) === 'dead-lettered') return null;
  throw new OperationalError('UNKNOWN_EVENT_KEY', verdict?.detail ?? 'this connection knows no keys');
}
