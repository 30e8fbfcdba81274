import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { encode } from './codec.ts';
import type { EventIdentity } from './event-keys.ts';
import { readServiceEvent } from './events.ts';
import { everyService } from './fixture.ts';
import type { Bus } from './nats/bus.ts';
import { headerNames, subjects } from './topology.ts';

let folder: string;
let identity: EventIdentity;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sandbus-test-'));
  identity = await everyService(folder);
});
after(() => rm(folder, { recursive: true }));

const job = { tenant: 'acme', jobId: '019d0000-0000-7000-8000-000000000001' };
const subject = subjects.job('cancelled', job);
const id = 'router:cancelled:x:SUBMISSIONS:1';
const event = encode('JobCancelled', { ...job, cancelledAt: 1, requestedBy: 'ada', reason: 'r' });
const ofAnother = Buffer.from(`c301${'ab'.repeat(8)}00`, 'hex');

describe('what a service says', () => {
  const cases: [what: string, data: Uint8Array, signed: boolean, expected: string][] = [
    ['is read', event, true, 'read'],
    ['is nobody’s without a signature', event, false, 'PoisonError BAD_EVENT_SIGNATURE'],
    [
      'in a schema that is newer than this service waits for its upgrade',
      ofAnother,
      true,
      'OperationalError NEWER_SCHEMA',
    ],
    [
      'in an unknown schema without a signature is garbage',
      ofAnother,
      false,
      'PoisonError BAD_EVENT_SIGNATURE',
    ],
    ['cut short is a dead letter', event.subarray(0, 20), true, 'PoisonError UNDECODABLE'],
  ];
  for (const [what, data, signed, expected] of cases)
    test(what, () => assert.equal(outcome(data, signed), expected));
});

function outcome(data: Uint8Array, signed: boolean): string {
  const signature = signed ? { [headerNames.signature]: identity.sign({ subject, id, data }) } : {};
  const headers = { 'Nats-Msg-Id': id, ...signature };
  const message = { stream: 'JOBS', sequence: 1, subject, data, headers, timeMs: 0 };
  try {
    readServiceEvent({ identity } as Bus, 'JobCancelled', message as never);
    return 'read';
  } catch (error) {
    return error instanceof Error && 'code' in error ? `${error.name} ${error.code}` : String(error);
  }
}
