/**
 * A service that is taken over: with the credentials and the event key of one, the others cannot be played. The server
 * refuses what a service may not publish; and where it would not, the signature does.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { uuidV7 } from '../../services/client/index.ts';
import { userCredentials } from '../../services/platform/access-paths.ts';
import { encode } from '../../services/platform/codec.ts';
import type { EventIdentity } from '../../services/platform/event-keys.ts';
import { everyService } from '../../services/platform/fixture.ts';
import { Bus } from '../../services/platform/nats/bus.ts';
import { inboxPrefix } from '../../services/platform/nats-permissions.ts';
import type { ServiceName } from '../../services/platform/topology.ts';
import { headerNames, mayBeSaidBy, serviceNames } from '../../services/platform/topology.ts';
import { eventually } from '../with-nats.ts';
import type { TestSystem } from '../with-system.ts';
import { finished, startTestSystem, text } from '../with-system.ts';

let system: TestSystem;
let keys: EventIdentity;
const buses = new Map<ServiceName, Bus>();
before(async () => {
  system = await startTestSystem();
  keys = await everyService(system.stateDir);
  for (const name of serviceNames)
    buses.set(
      name,
      await Bus.connect({
        ...{ url: system.url, name, inboxPrefix: inboxPrefix(name), identity: keys },
        credentials: userCredentials(system.stateDir, name),
      }),
    );
});
after(async () => {
  for (const bus of buses.values()) await bus.close();
  await system.stop();
});

const as = (service: ServiceName): Bus => buses.get(service) ?? assert.fail();
const serverLog = () => readFileSync(join(system.stateDir, 'nats/nats-server.log'), 'utf8');
const job = `acme.019d5f00-1111-7222-8333-444455556666`;

const said = [
  ...['verified', 'rejected', 'started', 'finished', 'cancelled', 'superseded'].map((k) => `job.${k}.${job}`),
  `work.bash.cpu.${job}`,
  `log.${job}.stdout`,
  `audit.${job}.finished`,
  'audit-checkpoint',
  ...serviceNames.map((service) => `trace.${service}`),
];

const calls: readonly string[] = [
  'STREAM.CREATE.MINE',
  'STREAM.UPDATE.JOBS',
  'STREAM.DELETE.JOBS',
  'STREAM.PURGE.JOBS',
  'STREAM.PURGE.KV_jobs',
  'CONSUMER.CREATE.JOBS',
  'CONSUMER.CREATE.JOBS.mine',
  'CONSUMER.DURABLE.CREATE.JOBS.mine',
  'CONSUMER.DELETE.JOBS.audit',
];

async function refused(subject: string, attempt: () => Promise<unknown>): Promise<void> {
  await assert.rejects(attempt(), /permissions violation|PERMISSIONS_VIOLATION/i);
  await eventually(`${subject} is in the log`, () =>
    serverLog()
      .split('\n')
      .some((line) => line.includes('Publish Violation') && line.includes(`"${subject}"`)),
  );
}

for (const service of serviceNames)
  describe(`the credentials of ${service}`, () => {
    for (const subject of [...said.filter((one) => !mayBeSaidBy(one, service)), `job.submitted.${job}`])
      test(`do not publish ${subject.replace(job, '…')}`, () =>
        refused(subject, () => as(service).publish(subject, Buffer.from('x'))));
    for (const call of calls)
      test(`do not call ${call}`, () => {
        const subject = `$JS.API.${call}`;
        return refused(subject, () => as(service).request(subject, Buffer.from('{}')));
      });
  });

describe('work of the consumers of others', () => {
  const cases: [ServiceName, stream: string, durable: string][] = [
    ['executor', 'SUBMISSIONS', 'verifier'],
    ['executor', 'JOBS', 'router'],
    ['executor', 'JOBS', 'audit'],
    ['verifier', 'JOBS', 'work-bash-cpu'],
    ['router', 'JOBS', 'work-bash-cpu'],
    ['audit', 'JOBS', 'router'],
  ];
  for (const [service, stream, durable] of cases)
    test(`${service} does not pull for ${durable} of ${stream}`, () => {
      const subject = `$JS.API.CONSUMER.MSG.NEXT.${stream}.${durable}`;
      return refused(subject, () => as(service).request(subject, Buffer.from('{"batch":1}')));
    });
});

/** What gets past the permissions: published with the credentials of who may, by whom it is not. */
const forgeries: [
  what: string,
  via: ServiceName,
  subject: (job: string) => string,
  author: string,
  signed: boolean,
][] = [
  ['a verification signed by the executor', 'verifier', (j) => `job.verified.${j}`, 'executor', true],
  [
    'a verification in the name of the verifier, unsigned',
    'verifier',
    (j) => `job.verified.${j}`,
    'verifier',
    false,
  ],
  ['work signed by the executor', 'router', (j) => `work.bash.cpu.${j}`, 'executor', true],
  ['work signed by the verifier', 'router', (j) => `work.bash.cpu.${j}`, 'verifier', true],
  ['work without a signature', 'router', (j) => `work.bash.cpu.${j}`, 'router', false],
  ['an end signed by the verifier', 'executor', (j) => `job.finished.${j}`, 'verifier', true],
  ['a cancellation signed by the executor', 'router', (j) => `job.cancelled.${j}`, 'executor', true],
];

describe('where permissions would let it through, the signature does not', () => {
  for (const [what, via, subjectOf, author, isSigned] of forgeries)
    test(`${what}: a dead letter in the ledger, and nothing runs`, async () => {
      const jobId = uuidV7();
      const subject = subjectOf(`acme.${jobId}`);
      const id = `${author}:forged:JOBS:${jobId}`;
      const data = encode('JobCancelled', {
        tenant: 'acme',
        jobId,
        cancelledAt: 1,
        requestedBy: '',
        reason: '',
      });
      const signature = isSigned ? { [headerNames.signature]: keys.sign({ subject, id, data }) } : {};
      await as(via).publish(subject, data, { id, headers: signature });
      const records = async () => {
        const found: string[] = [];
        for await (const { record, event } of system.client.records({ jobId, follow: false }))
          found.push(event?.name === 'JobDeadLettered' ? event.value.reason : record.kind);
        return found;
      };
      await eventually('dead letter', async () => (await records()).length > 0);
      assert.deepEqual([...new Set(await records())], ['BAD_EVENT_SIGNATURE']);
    });
});

test('after all that, jobs run', async () => {
  assert.equal(text(finished(await system.run('end.sh', 'echo alive\n')).stdout.inline), 'alive\n');
});
