/** Keeps a message that cannot be handled as a recorded event. */
import type { DeadLetter } from './consume.ts';
import { asCause, outgoing, publishEvent } from './events.ts';
import type { Bus } from './nats/bus.ts';
import { eventId, headerNames, jobOfAnySubject, subjects } from './topology.ts';

export function deadLetterTo(bus: Bus, service: string, nowMs: () => number): DeadLetter {
  return async (delivery, reason, detail) => {
    const job = jobOfAnySubject(delivery.subject);
    const cause = asCause(delivery);
    const event = outgoing(
      'JobDeadLettered',
      {
        ...job,
        deadLetteredAt: Math.round(nowMs() * 1000),
        service,
        reason,
        detail,
        stream: delivery.stream,
        streamSequence: delivery.sequence,
        subject: delivery.subject,
        headers: delivery.headers,
        payload: delivery.data,
      },
      {
        subject: subjects.job('dead-lettered', job),
        id: eventId(service, 'dead-lettered', cause, job),
        cause,
        traceparent: delivery.headers[headerNames.traceparent] ?? null,
      },
    );
    await publishEvent(bus, event);
  };
}
