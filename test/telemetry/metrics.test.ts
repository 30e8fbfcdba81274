/** The metrics that services export by OTLP/HTTP, received by a small collector here. */
import assert from 'node:assert/strict';
import type { IncomingMessage, Server } from 'node:http';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';
import { readAll } from '../../services/platform/process.ts';
import { eventually } from '../with-nats.ts';
import type { TestSystem } from '../with-system.ts';
import { startTestSystem } from '../with-system.ts';
import type { OtlpAttribute } from './otlp.ts';
import { attributesOf } from './otlp.ts';

interface Point {
  readonly attributes?: readonly OtlpAttribute[];
  readonly asInt?: string | number;
  readonly asDouble?: number;
  readonly count?: string | number;
  readonly sum?: number;
}
interface Metric {
  readonly name: string;
  readonly unit: string;
  readonly sum?: { readonly dataPoints: readonly Point[] };
  readonly gauge?: { readonly dataPoints: readonly Point[] };
  readonly histogram?: { readonly dataPoints: readonly Point[] };
}
interface MetricsRequest {
  readonly resourceMetrics: readonly {
    readonly resource: { readonly attributes: readonly OtlpAttribute[] };
    readonly scopeMetrics: readonly { readonly metrics: readonly Metric[] }[];
  }[];
}

let server: Server;
let system: TestSystem;
/** The newest export of each service: they are cumulative. */
const newest = new Map<string, readonly Metric[]>();

before(async () => {
  server = createServer((request, response) => void receive(request).then(() => response.end('{}')));
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : 0;
  system = await startTestSystem({
    OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: `http://127.0.0.1:${port}/v1/metrics`,
    OTEL_METRIC_EXPORT_INTERVAL: '200',
    SANDBUS_SLOTS: '3',
  });
});
after(async () => {
  await system?.stop();
  server.closeAllConnections();
  await new Promise((done) => server.close(done));
});

async function receive(request: IncomingMessage): Promise<void> {
  const { resourceMetrics } = JSON.parse((await readAll(request)).toString()) as MetricsRequest;
  for (const { resource, scopeMetrics } of resourceMetrics)
    newest.set(
      String(attributesOf(resource.attributes)['service.name']),
      scopeMetrics.flatMap(({ metrics }) => metrics),
    );
}

interface Found {
  readonly value: number;
  readonly attributes: Readonly<Record<string, unknown>>;
}

/** Points of a metric: a histogram's value is its count. */
function pointsOf(service: string, name: string): Found[] {
  const metric = newest.get(service)?.find((one) => one.name === name);
  const points = metric?.histogram ?? metric?.sum ?? metric?.gauge;
  return (points?.dataPoints ?? []).map(({ count, asInt, asDouble, attributes }) => ({
    value: Number(count ?? asInt ?? asDouble),
    attributes: attributesOf(attributes),
  }));
}

const bash = { 'sandbus.runtime': 'bash', 'sandbus.device_class': 'cpu' };
const rejected = { 'sandbus.outcome': 'rejected', 'sandbus.stage': 'verifier', 'error.type': 'UNSIGNED' };

const expected: [service: string, metric: string, points: Found[]][] = [
  ['executor', 'sandbus.job.queue.duration', [{ value: 2, attributes: bash }]],
  ['executor', 'sandbus.sandbox.setup.duration', [{ value: 2, attributes: bash }]],
  [
    'executor',
    'sandbus.job.run.duration',
    [
      { value: 1, attributes: { ...bash, 'sandbus.outcome': 'exited' } },
      { value: 1, attributes: { ...bash, 'sandbus.outcome': 'wall-time-exceeded' } },
    ],
  ],
  [
    'executor',
    'sandbus.jobs.ended',
    [
      { value: 1, attributes: { ...bash, 'sandbus.outcome': 'exited' } },
      { value: 1, attributes: { ...bash, 'sandbus.outcome': 'wall-time-exceeded' } },
    ],
  ],
  ['executor', 'sandbus.sandbox.denials', [{ value: 1, attributes: bash }]],
  ['executor', 'sandbus.executor.slots.limit', [{ value: 3, attributes: {} }]],
  ['executor', 'sandbus.executor.slots.used', [{ value: 0, attributes: {} }]],
  ['verifier', 'sandbus.jobs.ended', [{ value: 1, attributes: rejected }]],
];

test('jobs, times, denials and slots are counted once, by whoever ended the job', async () => {
  // unshare(2) is refused by policy.
  await system.run('denied.sh', 'unshare --user true 2>/dev/null; exit 0\n');
  await system.run('slow.sh', 'sleep 100\n', { limits: { wallMs: 1500 } });
  const { jobId } = await system.client.submit({ plugin: { name: 'x.sh', bytes: Buffer.from('exit\n') } });
  await system.client.wait(jobId);
  const byOutcome = (points: readonly Found[]) =>
    points.toSorted((a, b) => JSON.stringify(a).localeCompare(JSON.stringify(b)));
  const found = () =>
    expected.map(([service, metric]) => [service, metric, byOutcome(pointsOf(service, metric))]);
  const wanted = JSON.stringify(
    expected.map(([service, metric, points]) => [service, metric, byOutcome(points)]),
  );
  await eventually('all of it is exported', () => JSON.stringify(found()) === wanted, 20_000).catch(
    () => undefined,
  );
  assert.deepEqual(found(), JSON.parse(wanted));
});
