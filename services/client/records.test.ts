import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { TestNats } from '../../test/with-nats.ts';
import { startTestNats } from '../../test/with-nats.ts';
import type { AuditRecord } from '../platform/codec.ts';
import { encode } from '../platform/codec.ts';
import { Bus } from '../platform/nats/bus.ts';
import { headerNames, requestFilters, subjects } from '../platform/topology.ts';
import { AuditReader } from './audit-read.ts';
import type { RecordsOptions } from './records.ts';
import { readRecords } from './records.ts';

const tenant = 'default';
let nats: TestNats;
let client: Bus;
let ledger: Ledger;
/** What the service answers for a while; `silence` is nothing. */
let trouble: 'silence' | 'away' | null = null;
const untilMended = Promise.withResolvers<void>();
before(async () => {
  nats = await startTestNats();
  client = await Bus.connect({ url: nats.url, name: 'client', credentials: null });
  nats.bus.serve(requestFilters.auditRead, 'audit', async ({ data }) => {
    const query = JSON.parse(Buffer.from(data).toString()) as { after: number; jobId?: string };
    if (trouble === 'silence') await untilMended.promise;
    if (trouble === 'away')
      return { data: Buffer.from('the ledger is away'), headers: { [headerNames.error]: 'UNAVAILABLE' } };
    return { data: ledger.page(query.after, query.jobId), headers: {} };
  });
});
after(async () => {
  await client.close();
  await nats.stop();
});

/** A ledger whose records are published live, or are not: then only reading tells them. */
class Ledger {
  readonly records: AuditRecord[] = [];
  reads = 0;

  commit(jobId: string, ...how: ('silently' | 'twice')[]): void {
    const sequence = this.records.length;
    const ofJob = this.records.findLast((record) => record.jobId === jobId);
    const record: AuditRecord = {
      sequence,
      tenantSequence: sequence,
      recordedAt: 0,
      tenant,
      jobId,
      kind: 'started',
      subject: '',
      eventId: `e${sequence}`,
      signer: 'test',
      signature: null,
      traceparent: null,
      stream: 'JOBS',
      streamSequence: sequence + 1,
      payload: null,
      payloadSalt: new Uint8Array(),
      payloadHash: new Uint8Array(),
      previousLeafHash: ofJob?.leafHash ?? new Uint8Array(),
      leafHash: Buffer.from(`leaf ${sequence}`),
    };
    this.records.push(record);
    const times = how.includes('silently') ? 0 : how.includes('twice') ? 2 : 1;
    for (let time = 0; time < times; time++) this.publish(sequence);
  }

  publish(sequence: number): void {
    const record = this.records[sequence];
    if (record !== undefined)
      nats.bus.notify(
        subjects.audit({ tenant, jobId: record.jobId }, record.kind),
        encode('AuditRecord', record),
      );
  }

  /** Two records a page, so that there are several. */
  page(after: number, jobId: string | undefined): Uint8Array {
    this.reads += 1;
    const left = this.records.filter(
      (record) => record.tenantSequence > after && (jobId === undefined || record.jobId === jobId),
    );
    const items = left
      .slice(0, 2)
      .map((record) => ({ sequence: record.tenantSequence, bytes: encode('AuditRecord', record) }));
    return encode('AuditPage', { items, next: items.at(-1)?.sequence ?? after, more: left.length > 2 });
  }
}

/** Reads until `count` records have come; after each, `then` may commit more. */
async function read(
  count: number,
  options: RecordsOptions,
  then: (given: number) => void = () => undefined,
): Promise<number[]> {
  const given: number[] = [];
  if (count === 0) return given;
  for await (const { record } of readRecords(client, new AuditReader(client, tenant), tenant, options)) {
    given.push(record.tenantSequence);
    then(given.length);
    if (given.length === count) break;
  }
  return given;
}

describe('records', () => {
  it('come from the ledger, page by page, and end there without follow', async () => {
    ledger = new Ledger();
    for (let i = 0; i < 5; i++) ledger.commit('a', 'silently');
    assert.deepEqual(await read(99, { follow: false }), [0, 1, 2, 3, 4]);
    assert.deepEqual(await read(99, { follow: false, after: 2 }), [3, 4]);
  });

  it('go on live, each once, without reading the ledger again', async () => {
    ledger = new Ledger();
    ledger.commit('a', 'silently');
    const given = await read(4, {}, (count) =>
      ledger.commit('a', ...(count === 2 ? (['twice'] as const) : [])),
    );
    assert.deepEqual(given, [0, 1, 2, 3]);
    assert.equal(ledger.reads, 1);
  });

  it('one that was not published is read when the next one shows the hole', async () => {
    ledger = new Ledger();
    ledger.commit('a');
    const given = await read(4, {}, (count) => {
      if (count !== 1) return;
      ledger.commit('a');
      ledger.commit('a', 'silently');
      ledger.commit('a');
    });
    assert.deepEqual(given, [0, 1, 2, 3]);
  });

  it('published out of order, they come in order', async () => {
    ledger = new Ledger();
    ledger.commit('a');
    const given = await read(3, {}, (count) => {
      if (count !== 1) return;
      ledger.commit('a', 'silently');
      ledger.commit('a', 'silently');
      ledger.publish(2);
      ledger.publish(1);
    });
    assert.deepEqual(given, [0, 1, 2]);
  });

  it('of one job are followed by its chain of hashes', async () => {
    ledger = new Ledger();
    ledger.commit('a');
    let reads = 0;
    const given = await read(3, { jobId: 'a' }, (count) => {
      if (count === 1) reads = ledger.reads;
      ledger.commit('b');
      ledger.commit('a');
    });
    assert.deepEqual(given, [0, 2, 4]);
    assert.equal(ledger.reads, reads, 'no doubt, no reading');
  });

  it('from now on leave out what was before', async () => {
    ledger = new Ledger();
    ledger.commit('a', 'silently');
    const reading = read(2, { after: 'now' }, () => ledger.commit('a'));
    const ticking = setInterval(() => ledger.commit('a'), 20);
    const given = await reading.finally(() => clearInterval(ticking));
    assert.ok((given[0] ?? 0) >= 1);
    assert.equal(given[1], (given[0] ?? 0) + 1);
  });

  it('end when the reader has had enough', async () => {
    ledger = new Ledger();
    const enough = new AbortController();
    const reading = read(1, { signal: enough.signal });
    enough.abort();
    assert.deepEqual(await reading, []);
  });
});

describe('whoever waits is told', () => {
  const cases: [trouble: 'silence' | 'away', told: (string | null)[]][] = [
    ['silence', [null]],
    ['away', ['audit-read.default: the ledger is away']],
  ];
  for (const [what, expected] of cases)
    it(`of ${what} once, and goes on when there is an answer`, async () => {
      ledger = new Ledger();
      ledger.commit('a', 'silently');
      const told: (string | null)[] = [];
      const reader = new AuditReader(client, tenant, (reason) => {
        told.push(reason);
        trouble = null;
        untilMended.resolve();
      });
      trouble = what;
      const given: number[] = [];
      for await (const { record } of readRecords(client, reader, tenant, { follow: false }))
        given.push(record.tenantSequence);
      assert.deepEqual([given, told], [[0], expected]);
    });
});
