/** `sandbus up`: everything on one machine, until Ctrl-C. */
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Command } from 'commander';
import { z } from 'zod';
import { commonShape, loadConfig, positiveNumber, wholeNumber } from '../platform/config.ts';
import { UsageError } from '../platform/errors.ts';
import { Bus } from '../platform/nats/bus.ts';
import { encodePolicy } from '../trust/index.ts';
import { defaultPolicy } from './default-policy.ts';
import { startAll } from './system.ts';

export { startAll } from './system.ts';

const topologyShape = {
  ...commonShape,
  SANDBUS_REPLICAS: wholeNumber(1).default(1),
  SANDBUS_SIZE_FACTOR: positiveNumber.default(1),
};

export function registerUp(program: Command): void {
  program
    .command('up')
    .summary('run everything on this machine: an embedded NATS server and the four services')
    .description(
      'Runs an embedded nats-server on loopback and the four services, until Ctrl-C. State is kept.',
    )
    .option('--port <port>', 'port of the embedded NATS server; 0 takes any free one', '4222')
    .option('--state <folder>', 'where state is kept (SANDBUS_STATE_DIR)')
    .addHelpText('after', '\nExample:\n  sandbus up\n  sandbus up --port 0 --state /srv/sandbus')
    .action(async (options: { port: string; state?: string }) => {
      process.exitCode = await up(options);
    });
  program
    .command('topology')
    .summary('make the streams, consumers and buckets in a NATS server (deployment)')
    .description(
      'Makes or updates every stream, consumer and bucket and publishes the schemas. Run before any service.',
    )
    .addHelpText(
      'after',
      '\nExample:\n  SANDBUS_NATS_URL=nats://nats:4222 SANDBUS_REPLICAS=3 sandbus topology',
    )
    .action(makeTopology);
}

async function up(options: { port: string; state?: string }): Promise<number> {
  const config = loadConfig(topologyShape);
  const port = z.coerce.number().int().min(0).max(65535).safeParse(options.port);
  if (!port.success) throw new UsageError(`--port ${options.port}: must be 0 to 65535`);
  const stateDir = options.state ?? config.SANDBUS_STATE_DIR;
  const say = (text: string) => void process.stderr.write(`${text}\n`);
  await ensurePolicy(stateDir, say);
  const asked = stopAsked();
  const starting = startAll({
    stateDir,
    port: port.data,
    logs: 'files',
    replicas: config.SANDBUS_REPLICAS,
    sizeFactor: config.SANDBUS_SIZE_FACTOR,
    onEvent: say,
  });
  const system = await starting;
  say(`ready: SANDBUS_NATS_URL=${system.url}; state and logs in ${stateDir}; Ctrl-C stops`);
  const failure = await Promise.race([asked.then(() => null), system.failed]);
  say(failure ?? 'stopping: running jobs are ended, queued ones wait for the next start');
  await system.stop();
  return failure === null ? 0 : 1;
}

/** A first start gets a policy file to edit; without one, everything would be refused. */
async function ensurePolicy(stateDir: string, say: (text: string) => void): Promise<void> {
  const file = join(stateDir, 'policy.json');
  if (existsSync(file)) return;
  const encoded = encodePolicy(defaultPolicy);
  if (!encoded.ok) throw new Error(encoded.detail);
  await mkdir(stateDir, { recursive: true, mode: 0o700 });
  await writeFile(file, encoded.value, { flag: 'wx', mode: 0o600 });
  say(`wrote ${file}: the most that any job may ask for`);
}

async function makeTopology(): Promise<void> {
  const config = loadConfig(topologyShape);
  const { SANDBUS_NATS_URL: url, SANDBUS_NATS_CREDS: credentials } = config;
  const bus = await Bus.connect({ url, name: 'deployment', credentials });
  try {
    await bus.ensureTopology({ replicas: config.SANDBUS_REPLICAS, sizeFactor: config.SANDBUS_SIZE_FACTOR });
  } finally {
    await bus.close();
  }
}

function stopAsked(): Promise<void> {
  return new Promise((resolve) => {
    process.once('SIGINT', () => resolve());
    process.once('SIGTERM', () => resolve());
  });
}
