/**
 * What a service says about itself over HTTP, for whoever watches it: `/livez` (restart me when this fails) and `/readyz`
 * (I can do my work; if not, the reasons, as JSON). Looks at the bus when it is asked, and at what the service adds.
 */
import type { Server, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import { messageOf, UsageError } from './errors.ts';
import type { Bus } from './nats/bus.ts';
import type { ServiceName } from './topology.ts';
import { needsOf } from './topology.ts';

/** Null, or in a sentence why the service cannot do its work. */
export type HealthCheck = () => string | null;

export interface HealthAddress {
  readonly host: string;
  readonly port: number;
}

export interface HealthReport {
  readonly service: ServiceName;
  readonly ready: boolean;
  readonly reasons: readonly string[];
}

/** The server is given so long to answer; what takes longer is itself a reason. */
const patienceMs = 3_000;

export class Health {
  readonly #service: ServiceName;
  readonly #bus: Bus;
  #checks: readonly HealthCheck[] = [() => 'it is starting'];

  constructor(service: ServiceName, bus: Bus) {
    this.#service = service;
    this.#bus = bus;
  }

  /** From now on these decide, besides the bus. */
  watch(checks: readonly HealthCheck[]): void {
    this.#checks = checks;
  }

  async report(): Promise<HealthReport> {
    const own = this.#checks.map((check) => check()).filter((reason) => reason !== null);
    const reasons = [...own, ...(await this.#busReasons()), ...this.#bus.writeTroubles];
    return { service: this.#service, ready: reasons.length === 0, reasons };
  }

  async #busReasons(): Promise<readonly string[]> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<string[]>((resolve) => {
      timer = setTimeout(() => resolve([`NATS has not answered within ${patienceMs} ms`]), patienceMs);
    });
    const looked = this.#bus.missing(needsOf(this.#service)).catch((error: unknown) => [messageOf(error)]);
    return Promise.race([looked, late]).finally(() => clearTimeout(timer));
  }

  get live(): boolean {
    return !this.#bus.isClosed;
  }
}

/** Serves until it is stopped. Throws UsageError when the address cannot be had. */
export async function serveHealth(
  health: Health,
  { host, port }: HealthAddress,
): Promise<{ port: number; stop: () => Promise<void> }> {
  const server = createServer((request, response) => {
    void answer(health, request.url ?? '/', response);
  });
  await listening(server, host, port);
  const address = server.address();
  return {
    port: address !== null && typeof address === 'object' ? address.port : port,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function listening(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('listening', resolve);
    server.once('error', (cause) =>
      reject(new UsageError(`SANDBUS_HEALTH_ADDRESS ${host}:${port}: ${cause.message}`)),
    );
    server.listen(port, host);
  });
}

async function answer(health: Health, url: string, response: ServerResponse): Promise<void> {
  if (url === '/livez') return reply(response, health.live ? 200 : 503, { live: health.live });
  if (url !== '/readyz') return reply(response, 404, { error: 'there are /livez and /readyz' });
  const report = await health.report();
  reply(response, report.ready ? 200 : 503, report);
}

function reply(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' });
  response.end(`${JSON.stringify(body)}\n`);
}
