/**
 * What Jaeger has of jobs that end in every way: one trace for each, under one root, complete, the error on the span that
 * failed; and the same spans in our own store. `sh test/jaeger-server` builds the Jaeger that this needs.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { SubmitRequest } from '../../services/client/index.ts';
import { eventually } from '../with-nats.ts';
import type { TestSystem } from '../with-system.ts';
import { startTestSystem } from '../with-system.ts';
import type { Jaeger } from './jaeger.ts';
import { findJaeger, startJaeger } from './jaeger.ts';
import type { OtlpSpan } from './otlp.ts';

interface Case {
  readonly what: string;
  readonly plugin: readonly [name: string, source: string];
  readonly signed?: Parameters<TestSystem['sign']>[2] | false;
  readonly request?: Partial<SubmitRequest>;
  /** Cancels the job once it has printed something, or is routed. */
  readonly cancelWhen?: 'running' | 'routed';
  /** Beside `submit` and one `audit.commit` for each record. */
  readonly spans: readonly string[];
  /** Failed spans with their `error.type`. */
  readonly failed: Readonly<Record<string, string>>;
  readonly plugged?: Readonly<Record<string, unknown>>;
}

const ran = ['verify', 'route', 'execute', 'claim', 'sandbox.setup', 'plugin', 'collect'];
const both = (type: string) => ({ execute: type, plugin: type });

const cases: readonly Case[] = [
  {
    what: 'exits with 0',
    plugin: ['well.py', 'print("well")\n'],
    spans: ran,
    failed: {},
    plugged: {
      'process.executable.name': 'well.py',
      'process.runtime.name': 'python',
      'process.exit.code': 0,
      'sandbus.outcome': 'exited',
    },
  },
  {
    what: 'exits with 3',
    plugin: ['three.sh', 'exit 3\n'],
    spans: ran,
    failed: both('nonzero_exit'),
    plugged: { 'process.exit.code': 3 },
  },
  {
    what: 'is rejected by the verifier',
    plugin: ['unsigned.sh', 'echo never\n'],
    signed: false,
    spans: ['verify'],
    failed: { verify: 'UNSIGNED' },
  },
  {
    what: 'is rejected by the router',
    plugin: ['disguised.sh', '#!/usr/bin/python3\nprint(1)\n'],
    spans: ['verify', 'route'],
    failed: { route: 'RUNTIME_MISMATCH' },
  },
  {
    what: 'takes too much memory',
    plugin: ['hog.py', 'x = bytearray(1 << 28)\nfor i in range(0, len(x), 4096): x[i] = 1\n'],
    request: { limits: { memoryBytes: 64 * 1024 * 1024 } },
    spans: ran,
    failed: both('memory-exceeded'),
  },
  {
    what: 'takes too long',
    plugin: ['slow.sh', 'sleep 100\n'],
    request: { limits: { wallMs: 2000 } },
    spans: ran,
    failed: both('wall-time-exceeded'),
  },
  {
    what: 'is cancelled while it runs',
    plugin: ['cancelled.sh', 'echo running; sleep 100\n'],
    cancelWhen: 'running',
    spans: [...ran, 'cancel'],
    failed: both('cancelled'),
  },
  {
    what: 'is cancelled while it waits',
    plugin: ['waits.sh', 'echo never\n'],
    // No executor here serves GPU routes.
    signed: { requiresGpu: true },
    request: { requiresGpu: true },
    cancelWhen: 'routed',
    spans: ['verify', 'route', 'cancel'],
    failed: {},
  },
  {
    what: 'gets no sandbox',
    plugin: ['crowded.sh', 'echo never\n'],
    request: {
      limits: { tmpBytes: 64 * 1024 },
      inputs: [{ name: 'large', bytes: Buffer.alloc(300_000, 1) }],
    },
    spans: ran.filter((name) => name !== 'plugin'),
    failed: { execute: 'setup-failed', 'sandbox.setup': 'inputs' },
  },
];

const program = findJaeger();
const skip = program === null ? 'there is no Jaeger here: `sh test/jaeger-server` builds it' : false;

let jaeger: Jaeger | null = null;
let system: TestSystem;
const jobIds = new Map<Case, string>();
const sinceMs = Date.now() - 60_000;

before(async () => {
  if (program === null) return;
  jaeger = await startJaeger(program);
  system = await startTestSystem({
    OTEL_EXPORTER_OTLP_ENDPOINT: jaeger.otlpUrl,
    OTEL_METRICS_EXPORTER: 'none',
  });
  await Promise.all(cases.map(async (one) => jobIds.set(one, await toItsEnd(system, one))));
});
after(async () => {
  await system?.stop();
  await jaeger?.stop();
});

describe('in Jaeger, a job that', { skip }, () => {
  for (const one of cases)
    test(one.what, async () => {
      const jobId = jobIds.get(one) ?? '';
      const commits = traced(await recordsOf(system, jobId)).length;
      const spans = await wholeTrace(jobId, 1 + one.spans.length + commits);
      checkShape(spans, one);
      checkAttributes(spans, one);
      assert.equal(spans.filter(({ name }) => name === 'audit.commit').length, commits);
      await eventually('our own store has the same spans', async () => {
        const own = await system.client.spans(jobId);
        return sorted(own.map(({ spanId }) => spanId)) === sorted(spans.map(({ spanId }) => spanId));
      });
    });
});

/** The spans of the one trace that the job has in Jaeger, when there are so many, or as they are after a while. */
async function wholeTrace(jobId: string, count: number): Promise<readonly OtlpSpan[]> {
  let found: { traceIds: Set<string>; spans: OtlpSpan[] } = { traceIds: new Set(), spans: [] };
  const look = async () => {
    const all = (await jaeger?.spansWith('verifier', sinceMs)) ?? [];
    const marked = all.filter(({ attributes }) => attributes['sandbus.job.id'] === jobId);
    const traceIds = new Set(marked.map(({ traceId }) => traceId));
    found = { traceIds, spans: all.filter(({ traceId }) => traceIds.has(traceId)) };
    return found.spans.length >= count;
  };
  await eventually('all spans are in Jaeger', look, 20_000).catch(() => undefined);
  assert.equal(found.traceIds.size, 1, `traces: ${[...found.traceIds]}`);
  return found.spans;
}

const sorted = (names: readonly string[]): string => names.toSorted().join(' ');

/** Everything under one root; every consumer linked to its message; errors where they belong and nowhere else. */
function checkShape(spans: readonly OtlpSpan[], { spans: wanted, failed }: Case): void {
  const names = spans.map(({ name }) => name).filter((name) => name !== 'audit.commit');
  const failures = spans.map(({ name, attributes }) => [name, attributes['error.type'] ?? '']);
  assert.equal(sorted(names), sorted(['submit', ...wanted]), JSON.stringify(failures));
  const ids = new Set(spans.map(({ spanId }) => spanId));
  const roots = spans.filter(({ parentSpanId }) => !ids.has(parentSpanId));
  assert.deepEqual(
    roots.map(({ name, parentSpanId }) => [name, parentSpanId]),
    [['submit', '']],
  );
  const faults = spans
    .filter((span) => span.failed)
    .map(({ name, attributes }) => [name, attributes['error.type']]);
  assert.deepEqual(Object.fromEntries(faults), failed);
}

const messaging = ['submit', 'verify', 'route', 'execute', 'audit.commit', 'cancel'];

function checkAttributes(spans: readonly OtlpSpan[], { plugged = {} }: Case): void {
  for (const span of spans.filter(({ name }) => messaging.includes(name))) {
    assert.equal(span.attributes['messaging.system'], 'nats', span.name);
    assert.ok(span.attributes['messaging.destination.name'], span.name);
    assert.ok(span.attributes['messaging.operation.name'], span.name);
    if (span.name !== 'submit') assert.ok(span.links.includes(span.parentSpanId), `${span.name} is linked`);
  }
  const plugin = spans.find(({ name }) => name === 'plugin')?.attributes ?? {};
  for (const [key, value] of Object.entries(plugged)) assert.equal(plugin[key], value, key);
}

async function toItsEnd(system: TestSystem, one: Case): Promise<string> {
  const [name, source] = one.plugin;
  const bytes = Buffer.from(source);
  const envelope = one.signed === false ? null : system.sign(name, bytes, one.signed ?? {});
  const { jobId } = await system.client.submit({ plugin: { name, bytes }, envelope, ...one.request });
  if (one.cancelWhen !== undefined) {
    if (one.cancelWhen === 'running') await firstOutput(system, jobId);
    else await recordOf(system, jobId, one.cancelWhen);
    await system.client.cancel(jobId, 'the test says so');
  }
  await system.client.wait(jobId);
  return jobId;
}

/** Then the plugin runs for certain. */
async function firstOutput(system: TestSystem, jobId: string): Promise<void> {
  for await (const _item of system.client.logs(jobId, { follow: true })) return;
}

async function recordOf(system: TestSystem, jobId: string, kind: string): Promise<void> {
  for await (const { record } of system.client.records({ jobId })) if (record.kind === kind) return;
}

async function recordsOf(system: TestSystem, jobId: string) {
  const records = [];
  for await (const { record } of system.client.records({ jobId, follow: false })) records.push(record);
  return records;
}

/** A cancel request has no trace of its own; the router's span of it is in the job's. */
const traced = <T extends { readonly traceparent: string | null }>(records: readonly T[]): T[] =>
  records.filter(({ traceparent }) => traceparent !== null);
