/** How every service starts and stops: configuration, log, bus, telemetry, then its own loops; SIGTERM drains. */
import { randomUUID } from 'node:crypto';
import type { Clock } from './clock.ts';
import { systemClock } from './clock.ts';
import { commonShape, loadConfig } from './config.ts';
import { messageOf, UsageError } from './errors.ts';
import { EventKeys } from './event-keys.ts';
import { publishSigned } from './events.ts';
import type { HealthCheck } from './health.ts';
import { Health, serveHealth } from './health.ts';
import type { Logger } from './log.ts';
import { createLogger } from './log.ts';
import type { MetricsOptions } from './metrics.ts';
import { Bus } from './nats/bus.ts';
import { inboxPrefix } from './nats-permissions.ts';
import { serviceKeyFiles } from './service-keys.ts';
import { Telemetry } from './telemetry.ts';
import type { ServiceName } from './topology.ts';
import { subjects } from './topology.ts';

/** What a service is given to work with. */
export interface ServiceContext {
  readonly bus: Bus;
  readonly log: Logger;
  readonly telemetry: Telemetry;
  readonly clock: Clock;
}

export interface RunningService {
  /** Takes no more work and resolves when what is under way has ended; from the abort of `hurry` on it is ended. */
  stop(hurry?: AbortSignal): Promise<void>;
  /** Rejects when something went wrong that the service cannot mend. */
  readonly failed: Promise<never>;
  /** What it needs besides the bus, for its readiness. */
  readonly checks?: readonly HealthCheck[];
}

export type StartService = (context: ServiceContext) => Promise<RunningService>;

/**
 * Runs a service in this process until SIGTERM or SIGINT, or until it fails. Returns the exit code. When it is ready it
 * prints one line of JSON, `{"ready": "<name>"}`, on standard output, for whoever started it.
 */
export async function runService(name: ServiceName, start: StartService): Promise<number> {
  const config = loadConfig(commonShape);
  const log = createLogger(name, config.SANDBUS_LOG_LEVEL);
  const files = serviceKeyFiles(config.SANDBUS_STATE_DIR, name);
  const identity = EventKeys.load(
    name,
    {
      privateKey: config.SANDBUS_EVENT_KEY ?? files.privateKey,
      keyring: config.SANDBUS_SERVICE_KEYS ?? files.keyring,
    },
    log,
  );
  const bus = await Bus.connect({
    url: config.SANDBUS_NATS_URL,
    name,
    credentials: config.SANDBUS_NATS_CREDS,
    inboxPrefix: inboxPrefix(name),
    identity,
  });
  const telemetry = Telemetry.start({
    service: name,
    sink: async (spans) => void (await publishSigned(bus, subjects.trace(name), spanBatchId(name), spans)),
    instance: randomUUID(),
    exported: (config.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT ?? config.OTEL_EXPORTER_OTLP_ENDPOINT) !== null,
    metrics: metricsOptions(config),
  });
  const asked = stopRequest();
  const health = new Health(name, bus);
  const address = config.SANDBUS_HEALTH_ADDRESS;
  const served = address === null ? null : await serveHealth(health, address);
  try {
    const running = await start({ bus, log, telemetry, clock: systemClock });
    health.watch(running.checks ?? []);
    process.stdout.write(`${JSON.stringify({ ready: name })}\n`);
    log.info({ nats: bus.serverVersion }, 'ready');
    const reason = await Promise.race([asked.promise, running.failed, bus.closed().then(() => 'bus closed')]);
    log.info({ reason }, 'stopping');
    health.watch([() => 'it is stopping']);
    await running.stop(asked.hurry);
    return reason === 'bus closed' ? 1 : 0;
  } catch (error) {
    // What the operator has to mend is said in a sentence; only a bug needs its stack.
    const stack = error instanceof Error && !(error instanceof UsageError) ? error.stack : undefined;
    log.fatal({ error: messageOf(error), stack }, 'failed');
    return error instanceof UsageError ? error.exitCode : 1;
  } finally {
    asked.forget();
    await served?.stop();
    await telemetry.stop();
    await bus.close().catch(() => undefined);
  }
}

type TelemetryConfig = Readonly<
  Pick<
    ReturnType<typeof loadConfig<typeof commonShape>>,
    | 'OTEL_EXPORTER_OTLP_ENDPOINT'
    | 'OTEL_EXPORTER_OTLP_METRICS_ENDPOINT'
    | 'OTEL_METRICS_EXPORTER'
    | 'OTEL_METRIC_EXPORT_INTERVAL'
  >
>;

function metricsOptions(config: TelemetryConfig): MetricsOptions {
  const endpoint = config.OTEL_EXPORTER_OTLP_METRICS_ENDPOINT ?? config.OTEL_EXPORTER_OTLP_ENDPOINT;
  return {
    exported: endpoint !== null && config.OTEL_METRICS_EXPORTER !== 'none',
    intervalMs: config.OTEL_METRIC_EXPORT_INTERVAL,
  };
}

/** A batch of spans has no cause, so its id is any. */
const spanBatchId = (service: ServiceName): string => `${service}:spans:${randomUUID()}`;

/** The first signal asks the service to stop, the second to be quick about it. */
function stopRequest(): { promise: Promise<string>; hurry: AbortSignal; forget: () => void } {
  const { promise, resolve } = Promise.withResolvers<string>();
  const hurry = new AbortController();
  let signals = 0;
  const onSignal = (signal: NodeJS.Signals) => {
    signals += 1;
    if (signals === 1) resolve(signal);
    else hurry.abort();
  };
  process.on('SIGTERM', onSignal);
  process.on('SIGINT', onSignal);
  return {
    promise,
    hurry: hurry.signal,
    forget: () => {
      process.off('SIGTERM', onSignal);
      process.off('SIGINT', onSignal);
    },
  };
}
