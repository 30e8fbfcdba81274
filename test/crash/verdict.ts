/** What must hold at the end, whatever died: read from the ledger and from the starts that the plugins told of. Pure. */
import type { Entry } from '../../services/client/index.ts';
import { terminalKinds } from '../../services/platform/topology.ts';
import type { Submission } from './load.ts';
import { expectedOutput } from './load.ts';

export interface Evidence {
  readonly submissions: readonly Submission[];
  /** The whole ledger of the tenant, in order. */
  readonly entries: readonly Entry[];
  readonly startsOf: (jobId: string) => number;
  /** Names of executors that were killed or stood still. */
  readonly broken: (executor: string) => boolean;
}

export interface Verdict {
  readonly faults: readonly string[];
  readonly outcomes: ReadonlyMap<string, number>;
}

export function judge(evidence: Evidence): Verdict {
  const ofJob = new Map<string, Entry[]>();
  for (const entry of evidence.entries) {
    const list = ofJob.get(entry.record.jobId) ?? [];
    ofJob.set(entry.record.jobId, [...list, entry]);
  }
  const faults = [...ledgerFaults(evidence.entries)];
  const outcomes = new Map<string, number>();
  for (const submission of evidence.submissions) {
    const entries = ofJob.get(submission.jobId) ?? [];
    for (const fault of jobFaults(submission, entries, evidence))
      faults.push(
        `${submission.jobId} (${submission.plan.kind}, maxAttempts ${submission.plan.maxAttempts}, ` +
          `starts ${evidence.startsOf(submission.jobId)}): ${fault} [${entries.map(({ record }) => record.kind).join(' ')}]`,
      );
    const outcome = outcomeOf(entries);
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
  }
  const known = new Set(evidence.submissions.map(({ jobId }) => jobId));
  for (const jobId of ofJob.keys()) if (!known.has(jobId)) faults.push(`${jobId}: nobody submitted this job`);
  return { faults, outcomes };
}

const terminals = (entries: readonly Entry[]): Entry[] =>
  entries.filter(({ record }) => terminalKinds.some((kind) => kind === record.kind));

function outcomeOf(entries: readonly Entry[]): string {
  const [end] = terminals(entries);
  if (end === undefined) return 'none';
  return end.event?.name === 'JobFinished' ? end.event.value.outcome : end.record.kind;
}

/** Every event once, gapless, each after its cause. */
function* ledgerFaults(entries: readonly Entry[]): Iterable<string> {
  const places = new Set<string>();
  const ids = new Set<string>();
  for (const [index, { record }] of entries.entries()) {
    const about = `record ${record.tenantSequence} (${record.kind}, ${record.eventId})`;
    if (record.tenantSequence !== index) yield `${about}: is in place ${index}`;
    if (ids.has(record.eventId)) yield `${about}: twice in the ledger`;
    if (record.eventId.includes('~')) yield `${about}: two events with one id`;
    const cause = causeOf(record.eventId);
    const mayLackCause = record.kind === 'dead-lettered';
    if (record.stream === 'JOBS' && !mayLackCause && (cause === null || !places.has(cause)))
      yield `${about}: stands before its cause ${cause}`;
    ids.add(record.eventId);
    places.add(`${record.stream}:${record.streamSequence}`);
  }
}

/** `<stream>:<sequence>` at the end of an event's id. */
const causeOf = (eventId: string): string | null => /([A-Z]+:\d+)$/.exec(eventId)?.[1] ?? null;

function* jobFaults(submission: Submission, entries: readonly Entry[], evidence: Evidence): Iterable<string> {
  const count = (kind: string) => entries.filter(({ record }) => record.kind === kind).length;
  const ends = terminals(entries);
  if (ends.length !== 1) yield `${ends.length} terminal events`;
  if (count('submitted') > submission.tries) yield `submitted ${count('submitted')} times`;
  const { maxAttempts } = submission.plan;
  const starts = evidence.startsOf(submission.jobId);
  if (starts > maxAttempts) yield `user code was started ${starts} times`;
  if (starts > count('started')) yield `${count('started')} starts on record, ${starts} really`;
  const wrongLetter = entries.find(
    ({ event }) => event?.name === 'JobDeadLettered' && event.value.reason !== 'DUPLICATE_JOB',
  );
  if (wrongLetter?.event?.name === 'JobDeadLettered')
    yield `dead letter: ${wrongLetter.event.value.reason} ${wrongLetter.event.value.detail}`;
  if (ends[0] !== undefined) yield* resultFaults(submission, ends[0], evidence);
}

/** The result is there, or the end says that its executor died, and it did. */
function* resultFaults(submission: Submission, end: Entry, evidence: Evidence): Iterable<string> {
  const { jobId, plan } = submission;
  if (end.event?.name === 'JobCancelled') {
    if (plan.kind !== 'cancel') yield 'cancelled, and nobody asked for that';
    if (evidence.startsOf(jobId) > 0) yield 'cancelled before it started, and it has started';
    return;
  }
  if (end.event?.name !== 'JobFinished') {
    yield `ended as ${end.record.kind}: ${JSON.stringify(end.event?.value).slice(0, 300)}`;
    return;
  }
  const result = end.event.value;
  if (result.outcome === 'exited') {
    if (result.exitCode !== 7) yield `exit code ${result.exitCode}`;
    if (Buffer.from(result.stdout.inline).toString() !== expectedOutput(submission)) yield 'another output';
    if (evidence.startsOf(jobId) === 0) yield 'has a result, and was never started';
  } else if (result.outcome === 'executor_lost') {
    if (!evidence.broken(result.executor)) yield `lost, but executor ${result.executor} was well`;
  } else if (result.outcome !== 'cancelled' || plan.kind !== 'cancel')
    yield `${result.outcome}: ${JSON.stringify(result.error)}`;
}
