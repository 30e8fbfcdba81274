import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import type { TestNats } from '../../test/with-nats.ts';
import { startTestNats } from '../../test/with-nats.ts';
import type { JobSubmitted } from '../platform/codec.ts';
import { decodeAs } from '../platform/codec.ts';
import { OperationalError, UsageError } from '../platform/errors.ts';
import { headerNames, inlineBytes, requestFilters } from '../platform/topology.ts';
import { parseTraceparent } from '../platform/traceparent.ts';
import type { SandbusClient } from './client.ts';
import { connect } from './client.ts';
import { uuidV7 } from './ids.ts';
import type { SubmitRequest } from './submission.ts';

let nats: TestNats;
let client: SandbusClient;
const uploaded: string[] = [];
before(async () => {
  nats = await startTestNats();
  client = await connect({ url: nats.url });
  // Has everything already; which content it was asked about is what counts here.
  nats.bus.serve(requestFilters.upload, 'verifier', async ({ subject, headers }) => {
    uploaded.push(subject.split('.')[2] ?? '');
    return {
      data: Buffer.from(JSON.stringify({ offset: Number(headers[headerNames.size]), complete: true })),
      headers: {},
    };
  });
});
after(async () => {
  await client.close();
  await nats.stop();
});

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');
const small: SubmitRequest = { plugin: { name: 'a.sh', bytes: Buffer.from('#!/bin/bash\n') } };

/** Submits, and reads back what the bus holds. */
async function submitted(request: SubmitRequest) {
  const result = await client.submit(request);
  const message = await nats.bus.nextMessage('SUBMISSIONS', 1, `job.submitted.default.${result.jobId}`);
  assert.ok(message !== null);
  return { result, headers: message.headers, event: decodeAs('JobSubmitted', message.data) };
}

describe('a submission', () => {
  it('asks for nothing that the caller did not ask for', async () => {
    const { event, result } = await submitted(small);
    assert.equal(event.jobId, result.jobId);
    assert.ok(Math.abs(event.submittedAt / 1000 - Date.now()) < 5000);
    const { plugin, jobId: _, submittedAt: __, ...rest } = event;
    assert.equal(plugin.name, 'a.sh');
    assert.deepEqual(Object.values(rest.limits), Array(7).fill(null));
    assert.deepEqual({ ...rest, limits: null }, {
      tenant: 'default',
      envelope: null,
      args: [],
      env: {},
      stdin: null,
      inputs: [],
      limits: null,
      requiresGpu: false,
      network: 'none',
      maxAttempts: 1,
      deadline: null,
      labels: {},
    } satisfies Omit<JobSubmitted, 'jobId' | 'submittedAt' | 'plugin' | 'limits'> & { limits: null });
  });

  it('begins a trace, whose first span the verifier records', async () => {
    const { headers, result } = await submitted(small);
    assert.equal(headers[headerNames.delegatedSpan], '1');
    assert.equal(parseTraceparent(headers[headerNames.traceparent] ?? '')?.traceId, result.traceId);
  });

  it("belongs to the caller's trace, whose span the caller records", async () => {
    const traceparent = `00-${'ab'.repeat(16)}-${'cd'.repeat(8)}-01`;
    const { headers, result } = await submitted({ ...small, traceparent });
    assert.equal(headers[headerNames.traceparent], traceparent);
    assert.equal(headers[headerNames.delegatedSpan], undefined);
    assert.equal(result.traceId, 'ab'.repeat(16));
  });

  it('twice with one id is one', async () => {
    const jobId = uuidV7();
    assert.equal((await client.submit({ ...small, jobId })).duplicate, false);
    assert.equal((await client.submit({ ...small, jobId })).duplicate, true);
  });
});

/** Sizes of plugin, standard input and one input file; which of them travel inside the submission. */
const splits: readonly (readonly [
  name: string,
  sizes: readonly [number, number, number],
  inline: readonly [boolean, boolean, boolean],
])[] = [
  ['all small', [10, 10, 10], [true, true, true]],
  ['exactly as much as there is room for', [inlineBytes - 20, 10, 10], [true, true, true]],
  ['one byte more: the largest is uploaded', [inlineBytes - 19, 10, 10], [false, true, true]],
  ['a large input', [10, 10, 2 * inlineBytes], [true, true, false]],
  ['large standard input', [10, inlineBytes + 1, 10], [true, false, true]],
  ['empty ones', [10, 0, 0], [true, true, true]],
];

describe('content goes inline as long as all of it fits, else the largest is uploaded', () => {
  for (const [name, sizes, inline] of splits)
    it(name, async () => {
      uploaded.length = 0;
      const [plugin, stdin, input] = sizes.map((size, index) => Buffer.alloc(size, index + 1)) as [
        Buffer,
        Buffer,
        Buffer,
      ];
      async function* pieces() {
        for (let at = 0; at < stdin.length; at += 50_000) yield stdin.subarray(at, at + 50_000);
      }
      const request = {
        plugin: { name: 'a.sh', bytes: plugin },
        stdin: pieces(),
        inputs: [{ name: 'in', bytes: input }],
      };
      const { event } = await submitted(request);
      const contents = [event.plugin.content, event.stdin, event.inputs[0]?.content];
      assert.deepEqual(
        contents.map((content) => content?.inline !== null),
        inline,
      );
      for (const [index, bytes] of [plugin, stdin, input].entries()) {
        assert.equal(contents[index]?.sha256, sha256(bytes));
        assert.equal(contents[index]?.size, bytes.length);
        assert.equal(uploaded.includes(sha256(bytes)), !inline[index]);
      }
    });
});

const refused: readonly (readonly [
  name: string,
  request: SubmitRequest,
  kind: typeof UsageError | typeof OperationalError,
  message: RegExp,
])[] = [
  ['a job id that is none', { ...small, jobId: 'job-1' }, UsageError, /job id job-1: must be a UUIDv7/],
  [
    'trace context that is none',
    { ...small, traceparent: 'x' },
    UsageError,
    /traceparent x: must be W3C trace context/,
  ],
  [
    'a file that is not there',
    { plugin: { path: '/nonexistent/a.sh' } },
    UsageError,
    /cannot read \/nonexistent\/a\.sh: there is no such file/,
  ],
  ['a folder', { plugin: { path: '/tmp' } }, UsageError, /not a regular file/],
  [
    'more attempts than a number of the event can say',
    { ...small, maxAttempts: 99_999_999_999 },
    UsageError,
    /this cannot be asked for: .*maxAttempts is 99999999999/,
  ],
  [
    'a deadline that is no date',
    { ...small, deadline: new Date(Number.NaN) },
    UsageError,
    /this cannot be asked for: .*deadline is NaN/,
  ],
  [
    'arguments without end',
    { ...small, args: ['x'.repeat(950_000)] },
    OperationalError,
    /at most \d+; 950000 of them are the arguments: bring them/,
  ],
  [
    'a wrong file as the envelope',
    { ...small, envelope: Buffer.alloc(3_000_000), args: ['x'.repeat(100_000)] },
    OperationalError,
    /3000000 of them are the envelope: is it the file/,
  ],
  [
    'an environment without end',
    { ...small, env: { A: 'ü'.repeat(500_000) } },
    OperationalError,
    /1000001 of them are the environment/,
  ],
  [
    'labels without end',
    { ...small, labels: { a: 'x'.repeat(950_000) } },
    OperationalError,
    /950001 of them are the labels/,
  ],
];

describe('refused before anything is sent', () => {
  for (const [name, request, kind, message] of refused)
    it(name, () =>
      assert.rejects(client.submit(request), (error) => error instanceof kind && message.test(error.message)),
    );
});

it('a full bus is said to be full', async () => {
  const full = await startTestNats({ sizeFactor: 0.02 });
  const impatient = await connect({ url: full.url });
  try {
    const request = { plugin: { name: 'a.sh', bytes: Buffer.alloc(100_000) } };
    const filling = async () => {
      for (let count = 0; count < 40; count++) await impatient.submit(request);
    };
    await assert.rejects(
      filling(),
      (error) => error instanceof OperationalError && error.code === 'BUS_FULL',
    );
  } finally {
    await impatient.close();
    await full.stop();
  }
});
