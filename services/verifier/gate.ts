/**
 * Takes a submission only while there is room for all that the open jobs, and this one, can still say: so no service is
 * ever refused its next event. What does not get in waits in SUBMISSIONS, and when that is full submitters are refused.
 */
import type { Logger } from '../platform/log.ts';
import type { Bus, StreamState } from '../platform/nats/bus.ts';
import { consumers, streamOfBucket, terminalEventBytes } from '../platform/topology.ts';

export interface RoomFacts {
  readonly submissions: Pick<StreamState, 'messages' | 'bytes'>;
  /** Submissions that no verifier has taken yet. */
  readonly pending: number;
  readonly jobs: Pick<StreamState, 'messages' | 'bytes' | 'maxBytes'>;
  /** The entries of the jobs in KV. */
  readonly states: Pick<StreamState, 'bytes' | 'maxBytes'>;
}

/** For what is rare: superseded results, dead letters, events said twice, a second verifier at the same moment. */
const usableShare = 0.9;
/** Its start, its end, and the headers of both; the server adds some to each message. */
const bytesToCome = terminalEventBytes + 16 * 1024;
/** In the entry the terminal event stands in Base64. */
const entryBytes = Math.ceil((terminalEventBytes * 4) / 3) + 4 * 1024;

/** How many more submissions may be taken. Counts high what is in use: a job that has just ended still counts. */
export function roomFor({ submissions, pending, jobs, states }: RoomFacts): number {
  const open = Math.max(0, submissions.messages - pending);
  // Nothing is under way: one job fits into any bus that is large enough for its messages.
  const least = open === 0 && jobs.messages === 0 ? 1 : 0;
  // A submission is copied twice, as job.verified and as work.
  const inJobs = usableShare * jobs.maxBytes - jobs.bytes - 2 * submissions.bytes;
  const inStates = usableShare * states.maxBytes - states.bytes;
  const fit = Math.min(Math.floor(inJobs / bytesToCome), Math.floor(inStates / entryBytes));
  return Math.max(least, fit - open);
}

export class Gate {
  readonly #bus: Bus;
  readonly #log: Logger;
  #shut = false;

  constructor(bus: Bus, log: Logger) {
    this.#bus = bus;
    this.#log = log;
  }

  /** Why nothing is taken at the moment; null when something is. */
  get trouble(): string | null {
    return this.#shut ? 'the bus has no room for what more jobs would say: submissions wait' : null;
  }

  /** Throws OperationalError when the bus does not tell. */
  async room(): Promise<number> {
    const { stream, durable } = consumers.verifier;
    const [submissions, pending, jobs, states] = await Promise.all([
      this.#bus.streamState(stream),
      this.#bus.pending(stream, durable),
      this.#bus.streamState('JOBS'),
      this.#bus.streamState(streamOfBucket('jobs')),
    ]);
    const room = roomFor({ submissions, pending, jobs, states });
    if (this.#shut !== room <= 0) {
      this.#shut = room <= 0;
      const facts = { waiting: pending, jobsBytes: jobs.bytes, statesBytes: states.bytes };
      if (this.#shut) this.#log.warn(facts, 'no room for what more jobs would say: submissions wait');
      else this.#log.info(facts, 'there is room again');
    }
    return room;
  }
}
