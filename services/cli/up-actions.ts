/** What `sandbus up` and `sandbus topology` do. */
import type { Server } from 'node:net';
import { createServer } from 'node:net';
import { z } from 'zod';
import { commonShape, loadConfig, positiveNumber, wholeNumber } from '../platform/config.ts';
import { asDeployment } from './as-deployment.ts';
import { ensurePolicy } from './default-policy.ts';
import { parsePort } from './quantities.ts';
import { defaultGraceMs, startAll } from './system.ts';

/** Where queries are answered unless somebody else has the port. */
const usualQueryPort = 4280;

const topologyShape = {
  ...commonShape,
  SANDBUS_REPLICAS: wholeNumber(1).default(1),
  SANDBUS_SIZE_FACTOR: positiveNumber.default(1),
  SANDBUS_GRACE_MS: wholeNumber(0).default(defaultGraceMs),
  SANDBUS_QUERY_ADDRESS: z.string().min(1).nullable().default(null),
  SANDBUS_NATS_SERVER: z.string().min(1).nullable().default(null),
};

/** Runs everything until Ctrl-C. Returns the exit code. */
export async function up(options: { port: string; state?: string }): Promise<number> {
  const config = loadConfig(topologyShape);
  const port = parsePort(options.port);
  const stateDir = options.state ?? config.SANDBUS_STATE_DIR;
  const say = (text: string) => void process.stderr.write(`${text}\n`);
  const policy = await ensurePolicy(stateDir);
  if (policy !== null) say(`wrote ${policy}: the most that any job may ask for`);
  const asked = stopAsked();
  const graceMs = config.SANDBUS_GRACE_MS;
  const queryAddress = config.SANDBUS_QUERY_ADDRESS ?? `127.0.0.1:${await portOrAnother(usualQueryPort)}`;
  const system = await startAll({
    queryAddress,
    stateDir,
    graceMs,
    port,
    logs: 'files',
    replicas: config.SANDBUS_REPLICAS,
    sizeFactor: config.SANDBUS_SIZE_FACTOR,
    natsProgram: config.SANDBUS_NATS_SERVER ?? undefined,
    onEvent: say,
  });
  say(`queries: http://${queryAddress}/openapi.json; \`sandbus query-token add\` makes a token`);
  say(`ready: SANDBUS_NATS_URL=${system.url}; state and logs in ${stateDir}; Ctrl-C stops`);
  const failure = await Promise.race([asked.first.then(() => null), system.failed]);
  const seconds = graceMs / 1000;
  say(
    failure ??
      `stopping: running jobs have ${seconds} s to end, waiting ones stay for the next start; Ctrl-C again ends them now`,
  );
  void asked.second.then(() => {
    say('ending running jobs now');
    system.hurry();
  });
  await system.stop();
  return failure === null ? 0 : 1;
}

/** Makes everything that services expect in a NATS server. */
export async function makeTopology(): Promise<void> {
  const config = loadConfig(topologyShape);
  const { SANDBUS_NATS_URL: natsUrl, SANDBUS_NATS_CREDS: credentials } = config;
  const options = { replicas: config.SANDBUS_REPLICAS, sizeFactor: config.SANDBUS_SIZE_FACTOR };
  await asDeployment({ natsUrl, credentials }, (bus) => bus.ensureTopology(options));
}

function stopAsked(): { first: Promise<void>; second: Promise<void> } {
  const first = Promise.withResolvers<void>();
  const second = Promise.withResolvers<void>();
  let signals = 0;
  const onSignal = () => {
    signals += 1;
    if (signals === 1) first.resolve();
    else second.resolve();
  };
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, onSignal);
  return { first: first.promise, second: second.promise };
}

/** The port, when nobody has it on loopback, else any other one. */
async function portOrAnother(port: number): Promise<number> {
  const server = createServer();
  try {
    await listening(server, port).catch(() => listening(server, 0));
    const address = server.address();
    return address !== null && typeof address === 'object' ? address.port : port;
  } finally {
    server.close();
  }
}

function listening(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', () => resolve());
  });
}
