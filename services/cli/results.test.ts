import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { JobFinished, JobResult, Outcome } from '../client/index.ts';
import { explain } from './results.ts';

/** Only what the sentence depends on. */
function ended(outcome: Outcome, error: JobFinished['error'] = null): JobResult {
  return { kind: 'finished', event: { outcome, error } } as JobResult;
}

const error = (step: string, message: string, mend: string) => ({ step, errno: null, message, mend });
const revoked = error(
  'revoked',
  'key 1f is revoked in trust store version 4',
  'sign the plugin with another key',
);
const shutdown = error('executor-shutdown', 'the executor was stopped', 'submit the job again');
const lease = error('lease', 'the lease was lost', 'submit the job again');
const cgroup = error('cgroup', 'no memory controller', '');

const cases: readonly (readonly [name: string, result: JobResult, sentence: string])[] = [
  ['cancelled by its submitter', ended('cancelled'), 'the job was cancelled while it ran'],
  [
    'revoked',
    ended('cancelled', revoked),
    'the job was cancelled while it ran: key 1f is revoked in trust store version 4. Sign the plugin with another key',
  ],
  [
    'the executor was stopped',
    ended('cancelled', shutdown),
    'the job was cancelled while it ran: the executor was stopped. Submit the job again',
  ],
  [
    'the executor was lost',
    ended('executor_lost', lease),
    'the executor was lost: the lease was lost. Submit the job again',
  ],
  [
    'no sandbox, and nothing to advise',
    ended('setup_failed', cgroup),
    'the sandbox could not be built (cgroup): no memory controller.',
  ],
];

describe('an end that was not the own doing of the plugin is told with its reason and what to do', () => {
  for (const [name, result, sentence] of cases) it(name, () => assert.equal(explain(result), sentence));
});
