import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { factsOf } from './message-facts.ts';

describe('who a message says it is by', () => {
  const cases: [stream: string, id: string | null, signer: string, eventId: string][] = [
    ['JOBS', 'audit:x:JOBS:1', 'audit', 'audit:x:JOBS:1'],
    ['JOBS', 'audits:x:JOBS:1', 'unknown', 'audits:x:JOBS:1'],
    ['JOBS', 'auditx', 'unknown', 'auditx'],
    ['JOBS', 'audit', 'audit', 'audit'],
    ['JOBS', '', 'unknown', 'unknown:started:-:JOBS:7'],
    ['JOBS', null, 'unknown', 'unknown:started:-:JOBS:7'],
    ['SUBMISSIONS', 'audit:x:JOBS:1', 'submitter', 'submitter:started:-:SUBMISSIONS:7'],
  ];
  for (const [stream, id, signer, eventId] of cases)
    test(`${stream} ${id}`, () => {
      const headers: Record<string, string> = id === null ? {} : { 'Nats-Msg-Id': id };
      const facts = factsOf({
        stream,
        sequence: 7,
        subject: 'job.started.acme.x',
        data: Buffer.from(''),
        headers,
      });
      assert.deepEqual([facts.signer, facts.eventId], [signer, eventId]);
    });
});
