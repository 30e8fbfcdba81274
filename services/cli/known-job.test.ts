import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { JobSummary } from '../client/index.ts';
import { OperationalError } from '../platform/errors.ts';
import { knownJob } from './known-job.ts';

const there = { jobId: 'j', state: 'started' } as JobSummary;
const slow = new OperationalError('REQUEST_FAILED', 'TIMEOUT');
const away = new OperationalError('NO_SERVICE', 'no service answers');
const broken = new OperationalError('INTERNAL', 'the audit service has a problem');

describe('a job that somebody names', () => {
  const cases: [
    what: string,
    answers: (JobSummary | null | Error)[],
    patienceMs: number,
    expected: string,
  ][] = [
    ['is there', [there], 0, 'started'],
    ['is recorded a moment later', [null, null, there], 0, 'started'],
    ['is not there', [null, null, null, null, null, there], 0, 'there is no job j of tenant acme'],
    ['while the audit service starts again', [away, slow, null, there], 60_000, 'started'],
    ['while no service answers', [away, there], 0, 'no service answers'],
    ['while the service fails', [broken, there], 60_000, 'the audit service has a problem'],
  ];
  for (const [what, answers, patienceMs, expected] of cases)
    test(what, async () => {
      const job = async () => {
        const answer = answers.shift() ?? null;
        if (answer instanceof Error) throw answer;
        return answer;
      };
      const found = await knownJob({ tenant: 'acme', job }, 'j', patienceMs).then(
        ({ state }) => state,
        (error: Error) => error.message,
      );
      assert.equal(found, expected);
    });
});
