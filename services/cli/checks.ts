/** The checks of `sandbus doctor`, one result each. A check never throws: what it cannot find out is missing. */
import { existsSync } from 'node:fs';
import { access, constants, statfs } from 'node:fs/promises';
import { z } from 'zod';
import type { SandbusClient } from '../client/index.ts';
import { connect } from '../client/index.ts';
import { userCredentials } from '../platform/access-paths.ts';
import { messageOf } from '../platform/errors.ts';
import { Bus } from '../platform/nats/bus.ts';
import { inboxPrefix } from '../platform/nats-permissions.ts';
import { findNatsServer } from '../platform/nats-server.ts';
import { runChild } from '../platform/process.ts';
import type { CliConfig } from './config.ts';
import { toolEnvironment } from './config.ts';
import { formatTime } from './quantities.ts';
import { loadPolicy, loadTrustStore } from './signing.ts';

export interface Check {
  readonly name: string;
  readonly ok: boolean;
  /** Whether no job runs without it. */
  readonly required: boolean;
  readonly detail: string;
  /** What to do; null when nothing needs mending. */
  readonly mend: string | null;
}

export async function* checkEverything(config: CliConfig): AsyncGenerator<Check, void> {
  yield* await checkLauncher(config.launcher);
  for (const runtime of runtimesOf(config)) yield await checkRuntime(runtime);
  yield checkNatsServer();
  yield* await checkBus(config);
  yield* await checkStorage(config.natsUrl, config.stateDir);
  yield* await checkDisk(config.stateDir);
  yield await checkTrustStore(config.trustStore, config.trustRoot);
  yield await checkPolicy(config.policy);
}

const hostReport = z.object({
  controls: z.array(
    z.object({
      name: z.string(),
      ok: z.boolean(),
      required: z.boolean(),
      detail: z.string(),
      mend: z.string().nullable(),
    }),
  ),
});

/** What the launcher says of this host's kernel, control by control. */
async function checkLauncher(launcher: string): Promise<Check[]> {
  try {
    const { stdout } = await runChild(launcher, ['check-host', '--json'], toolEnvironment());
    const { controls } = hostReport.parse(JSON.parse(stdout.toString('utf8')));
    return controls.map(({ name, ...rest }) => ({ name: `sandbox: ${name}`, ...rest }));
  } catch (error) {
    const mend = 'build it with `make -C sandbox-runtime`, or set SANDBUS_LAUNCHER';
    return [missing('sandbox', `the launcher ${launcher} gives no report: ${messageOf(error)}`, mend)];
  }
}

interface RuntimeProgram {
  readonly name: string;
  readonly program: string;
  readonly args: readonly string[];
  readonly variable: string;
}

function runtimesOf({ interpreters }: CliConfig): RuntimeProgram[] {
  const version = ['--version'];
  return [
    { name: 'python', program: interpreters.python, args: version, variable: 'SANDBUS_PYTHON' },
    { name: 'node', program: interpreters.node, args: version, variable: 'SANDBUS_NODE' },
    { name: 'ruby', program: interpreters.ruby, args: version, variable: 'SANDBUS_RUBY' },
    { name: 'bash', program: interpreters.bash, args: version, variable: 'SANDBUS_BASH' },
  ];
}

async function checkRuntime({ name, program, args, variable }: RuntimeProgram): Promise<Check> {
  const check = { name: `runtime: ${name}`, required: false };
  try {
    await access(program, constants.X_OK);
    const { stdout, stderr, code } = await runChild(program, args, toolEnvironment());
    const [version = ''] = `${stdout}${stderr}`.trim().split('\n');
    if (code === 0) return { ...check, ok: true, detail: `${program}, ${version}`, mend: null };
    return {
      ...check,
      ok: false,
      detail: `${program} --version exits with ${code}`,
      mend: `repair it, or set ${variable}`,
    };
  } catch (error) {
    const mend = `install it, or set ${variable}; until then, plugins of this runtime are not run here`;
    return { ...check, ok: false, detail: `${program}: ${messageOf(error)}`, mend };
  }
}

function checkNatsServer(): Check {
  const check = { name: 'nats-server program', required: false };
  try {
    return { ...check, ok: true, detail: findNatsServer(), mend: null };
  } catch (error) {
    return { ...check, ok: false, detail: '`sandbus up` needs it', mend: messageOf(error) };
  }
}

/** The server, and whether the audit service answers behind it. */
async function checkBus(config: CliConfig): Promise<Check[]> {
  const { natsUrl: url, credentials, tenant } = config;
  const start = 'start everything with `sandbus up`, or set SANDBUS_NATS_URL';
  try {
    const client = await connect({ url, credentials, tenant, timeoutMs: 1000 });
    const { serverVersion, serverFault } = client;
    const nats = found('NATS', `${url}, version ${serverVersion}`);
    const fit = serverFault === null ? [] : [missing('NATS cluster', serverFault, 'replace the servers')];
    const jetStream = await checkJetStream(client);
    const audit = await client.jobs({ limit: 1 }).then(
      () => found('services', 'the audit service answers'),
      (error: unknown) => missing('services', messageOf(error), start),
    );
    await client.close();
    return [nats, ...fit, jetStream, audit];
  } catch (error) {
    return [missing('NATS', messageOf(error), start)];
  }
}

const diskMend =
  'see the log and the disk of the NATS server; when there is room again, start it again (`sandbus up` does)';

/** A server whose disk was full answers, and takes nothing. */
export async function checkJetStream(client: Pick<SandbusClient, 'busRefusal'>): Promise<Check> {
  const refusal = await client.busRefusal();
  return refusal === null
    ? found('JetStream', 'it takes submissions')
    : missing('JetStream', refusal, diskMend);
}

const trialBytes = 64 * 1024;

const storageDeadlineMs = 5_000;

/** Where the credentials of deployment are: whether a write comes through. What it writes it removes. */
export async function checkStorage(url: string, stateDir: string): Promise<Check[]> {
  const credentials = userCredentials(stateDir, 'deployment');
  if (!existsSync(credentials)) return [];
  const fault = await tryToStore(url, credentials, AbortSignal.timeout(storageDeadlineMs));
  return [
    fault === null
      ? found('NATS storage', 'a write was confirmed')
      : missing('NATS storage', fault, diskMend),
  ];
}

async function tryToStore(url: string, credentials: string, late: AbortSignal): Promise<string | null> {
  const about = { name: 'deployment', inboxPrefix: inboxPrefix('deployment'), timeoutMs: 1000 };
  try {
    const bus = await Bus.connect({ url, credentials, ...about });
    // Everything that waits for an answer ends with the connection.
    late.addEventListener('abort', () => void bus.abandon());
    try {
      const schemas = await bus.kv('schemas');
      await schemas.put('doctor', Buffer.alloc(trialBytes));
      await schemas.remove('doctor');
      return null;
    } finally {
      await bus.close();
    }
  } catch (error) {
    return late.aborted ? `no write was confirmed within ${storageDeadlineMs} ms` : messageOf(error);
  }
}

const leastFreeBytes = 256 * 1024 * 1024;

async function checkDisk(stateDir: string): Promise<Check[]> {
  const disk = await statfs(stateDir).catch(() => null);
  if (disk === null) return [];
  const freeBytes = disk.bavail * disk.bsize;
  const detail = `${stateDir}, ${Math.floor(freeBytes / 1024 / 1024)} MiB free`;
  const ok = freeBytes >= leastFreeBytes;
  return [{ name: 'disk', ok, required: false, detail, mend: ok ? null : 'make room on this disk' }];
}

async function checkTrustStore(path: string, root: string): Promise<Check> {
  const mend =
    'make one with `sandbus trust init` and `sandbus trust add`, or set SANDBUS_TRUST_STORE and SANDBUS_TRUST_ROOT';
  try {
    const { version, keys, expiresMs } = await loadTrustStore(path, root);
    if (keys.length === 0)
      return missing('trust store', `${path} trusts no key`, 'add one with `sandbus trust add`');
    if (expiresMs <= Date.now())
      return missing(
        'trust store',
        `${path} expired ${formatTime(expiresMs)} UTC`,
        'renew it with `sandbus trust renew`',
      );
    return found(
      'trust store',
      `${path}, version ${version}, ${keys.length} keys, until ${formatTime(expiresMs)} UTC`,
    );
  } catch (error) {
    return missing('trust store', messageOf(error), mend);
  }
}

async function checkPolicy(path: string): Promise<Check> {
  try {
    const { tenants } = await loadPolicy(path);
    return found('policy', `${path}, ${tenants.size} tenants of their own`);
  } catch (error) {
    return missing('policy', messageOf(error), '`sandbus up` writes a first one; or set SANDBUS_POLICY');
  }
}

const found = (name: string, detail: string): Check => ({
  name,
  ok: true,
  required: true,
  detail,
  mend: null,
});

function missing(name: string, detail: string, mend: string): Check {
  return { name, ok: false, required: true, detail, mend };
}
