/** A real Jaeger for one test file: OTLP in, /api/v3 out, both on ports of its own on loopback, traces in its memory. */
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { readAll, startChild, stopChild } from '../../services/platform/process.ts';
import { freePorts } from '../free-ports.ts';
import { eventually } from '../with-nats.ts';
import type { OtlpSpan } from './otlp.ts';
import { spansIn } from './otlp.ts';

/** As test/jaeger-server builds it. */
const version = 'v1.76.0';

/** The program, or null where `sh test/jaeger-server` has not built it. */
export function findJaeger(): string | null {
  const cache = process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache');
  const file = process.env.SANDBUS_JAEGER ?? join(cache, 'sandbus', `jaeger-${version}`, 'jaeger');
  return existsSync(file) ? file : null;
}

export interface Jaeger {
  /** For OTEL_EXPORTER_OTLP_ENDPOINT. */
  readonly otlpUrl: string;
  /** All spans of the traces in which the service has a part since `sinceMs`. */
  spansWith(service: string, sinceMs: number): Promise<OtlpSpan[]>;
  stop(): Promise<void>;
}

export async function startJaeger(program: string): Promise<Jaeger> {
  const folder = await mkdtemp(join(tmpdir(), 'sandbus-jaeger-'));
  const [otlp = 0, query = 0, grpc = 0] = await freePorts(3);
  const config = join(folder, 'jaeger.json');
  await writeFile(config, JSON.stringify(configuration({ otlp, query, grpc })));
  const child = await startChild(program, ['--config', `file:${config}`], {
    env: { PATH: '/usr/bin:/bin' },
    stdio: ['ignore', 'ignore', 'pipe'],
    diesWithParent: true,
  });
  const said = readAll(child.stderr);
  const api = `http://127.0.0.1:${query}/api/v3`;
  const stop = async () => {
    await stopChild(child, 5000);
    await rm(folder, { recursive: true, force: true });
  };
  let ended = false;
  void child.exited.then(() => {
    ended = true;
  });
  try {
    const answers = async () => ended || (await fetch(`${api}/services`).catch(() => null))?.ok === true;
    await eventually('Jaeger answers', answers, 20_000);
    if (ended) throw new Error(`Jaeger has ended: ${(await said).toString().slice(-2000)}`);
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    otlpUrl: `http://127.0.0.1:${otlp}`,
    spansWith: (service, sinceMs) => findSpans(api, service, sinceMs),
    stop,
  };
}

async function findSpans(api: string, service: string, sinceMs: number): Promise<OtlpSpan[]> {
  const query = new URLSearchParams({
    'query.service_name': service,
    'query.start_time_min': new Date(sinceMs).toISOString(),
    'query.start_time_max': new Date(Date.now() + 60_000).toISOString(),
    'query.num_traces': '1000',
    'query.search_depth': '1000',
  });
  const reply = await fetch(`${api}/traces?${query}`);
  // Jaeger has no empty list: nothing found is 404.
  if (reply.status === 404) return [];
  if (!reply.ok) throw new Error(`Jaeger: ${reply.status} ${await reply.text()}`);
  const { result } = (await reply.json()) as { result: Parameters<typeof spansIn>[0] };
  return spansIn(result);
}

/** YAML is a superset of JSON. */
function configuration({ otlp, query, grpc }: Record<'otlp' | 'query' | 'grpc', number>) {
  const at = (port: number) => ({ endpoint: `127.0.0.1:${port}` });
  return {
    service: {
      extensions: ['jaeger_storage', 'jaeger_query'],
      pipelines: { traces: { receivers: ['otlp'], exporters: ['jaeger_storage_exporter'] } },
      telemetry: { metrics: { level: 'none' }, logs: { level: 'warn' } },
    },
    extensions: {
      jaeger_storage: { backends: { memory: { memory: { max_traces: 10_000 } } } },
      jaeger_query: { storage: { traces: 'memory' }, http: at(query), grpc: at(grpc) },
    },
    receivers: { otlp: { protocols: { http: at(otlp) } } },
    exporters: { jaeger_storage_exporter: { trace_storage: 'memory' } },
  };
}
