/**
 * Configuration from the environment. Only config files read it. Every fault is reported, all together, before
 * anything starts; an unknown SANDBUS_ variable is a fault too, since a misspelt limit would silently be no limit.
 */
import { homedir, hostname } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { UsageError } from './errors.ts';

const root = join(import.meta.dirname, '../..');

/** Every variable that any part of Sandbus understands, with its meaning for the manual. */
export const knownVariables: Readonly<Record<string, string>> = {
  SANDBUS_NATS_URL:
    'NATS server, nats://127.0.0.1:4222 unless set; nodes of a cluster are separated by commas',
  SANDBUS_NATS_SERVER: 'nats-server program of `sandbus up`; found on this machine unless set',
  SANDBUS_NATS_CREDS:
    'credentials file for NATS; unless set, the command line takes <state>/access/tenants/<tenant>.nk where it is there ' +
    '(`audit erase`: <state>/access/deployment.nk), everything else takes none',
  SANDBUS_SERVICE_KEYS: 'public keys of the services, <state>/service-keys.json unless set',
  SANDBUS_EVENT_KEY:
    'private key with which a service signs its events, <state>/keys/<service>.pem unless set',
  SANDBUS_STATE_DIR:
    'where this machine keeps its state: ledger, caches, keys; ~/.local/state/sandbus unless set',
  SANDBUS_LEDGER_URL:
    'ledger in PostgreSQL, postgres://user@host/database (password: PGPASSFILE); SQLite in <state>/ledger.db unless set',
  SANDBUS_LEDGER_KEY: 'private key with which audit signs checkpoints, <state>/keys/ledger.pem unless set',
  SANDBUS_LEDGER_VERIFIER_KEY: 'its public part, one line, <state>/ledger.pub unless set',
  SANDBUS_TRUST_STORE: 'trust store file, <state>/trust.json unless set',
  SANDBUS_TRUST_ROOT:
    'public key of the root that signs the trust store: a file, or the key; <state>/root.pub unless set',
  SANDBUS_ROOT_KEY:
    'private key of the root for `sandbus trust`: a file, or fd:N; <state>/root.pem unless set',
  SANDBUS_SIGNING_KEY: 'private key for `sandbus sign`: a file, or fd:N',
  SANDBUS_POLICY: 'policy file of the operator, <state>/policy.json unless set',
  SANDBUS_TENANT: 'tenant of the command line, `default` unless set',
  SANDBUS_LAUNCHER: 'the launcher, sandbox-runtime/build/launcher unless set',
  SANDBUS_HEALTH_ADDRESS: 'host:port where a service answers /livez and /readyz; none unless set',
  SANDBUS_QUERY_ADDRESS:
    'host:port where the audit service answers queries over HTTP; none unless set (`sandbus up`: a port on loopback)',
  SANDBUS_QUERY_TOKENS:
    'tokens for queries, made by `sandbus query-token`; <state>/query-tokens.json unless set',
  SANDBUS_LOG_LEVEL: 'trace, debug, info, warn, error or fatal; info unless set',
  SANDBUS_REPLICAS: 'replicas of each stream, 1 unless set',
  SANDBUS_SIZE_FACTOR: 'multiplies the size limit of each stream, 1 unless set',
  SANDBUS_SLOTS: 'jobs that an executor runs at one time, the number of cores unless set',
  SANDBUS_MEMORY_BUDGET:
    'memory that an executor gives to its jobs together, bytes; 3/4 of the machine unless set',
  SANDBUS_EXECUTOR_ID: 'name of this executor, <host>-<pid> unless set',
  SANDBUS_LEASE_MS: 'a job is lost when its executor says nothing for this long, 15000 unless set',
  SANDBUS_GRACE_MS: 'how long a stopping executor lets its jobs run on, 10000 unless set',
  SANDBUS_KEEP_PAYLOAD_DAYS:
    'days after which what the events of ended jobs say is erased from the ledger; their leaves stay. For ever unless set',
  SANDBUS_KEEP_SPAN_DAYS: 'days after which spans are removed from the audit store; for ever unless set',
  SANDBUS_ALLOW_HOST_NETWORK: '1 lets jobs whose signature and policy allow it use the network of the host',
  SANDBUS_PYTHON: 'interpreter for .py, /usr/bin/python3 unless set',
  SANDBUS_RUBY: 'interpreter for .rb, /usr/bin/ruby unless set',
  SANDBUS_BASH: 'interpreter for .sh, /usr/bin/bash unless set',
  SANDBUS_NODE: 'interpreter for .js and .ts, the Node that runs Sandbus unless set',
  SANDBUS_JOB_ID: 'set inside a job, by the executor',
  OTEL_EXPORTER_OTLP_ENDPOINT: 'collector for spans and metrics by OTLP/HTTP, e.g. http://127.0.0.1:4318',
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'the same for spans alone, with its path (…/v1/traces)',
  OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: 'the same for metrics alone, with its path (…/v1/metrics)',
  OTEL_METRICS_EXPORTER: 'otlp or none: a collector such as Jaeger takes no metrics; otlp unless set',
  OTEL_METRIC_EXPORT_INTERVAL: 'how often metrics are exported, milliseconds; 60000 unless set',
};

export interface HostPort {
  readonly host: string;
  readonly port: number;
}

/** `host:port`, where something listens. */
export const hostPort = z
  .string()
  .regex(/^[^\s:]+:\d{1,5}$/, 'must look like 127.0.0.1:8080')
  .transform((text): HostPort => ({ host: text.split(':')[0] ?? '', port: Number(text.split(':')[1]) }));

/** Variables that each service has in common. Services extend this with their own. */
export const commonShape = {
  SANDBUS_NATS_URL: z
    .string()
    .regex(/^(nats|tls):\/\/[^\s,]+(,(nats|tls):\/\/[^\s,]+)*$/, 'must look like nats://host:port')
    .default('nats://127.0.0.1:4222'),
  SANDBUS_NATS_CREDS: z.string().min(1).nullable().default(null),
  SANDBUS_STATE_DIR: z.string().min(1).default(join(homedir(), '.local/state/sandbus')),
  SANDBUS_SERVICE_KEYS: z.string().min(1).nullable().default(null),
  SANDBUS_EVENT_KEY: z.string().min(1).nullable().default(null),
  SANDBUS_LOG_LEVEL: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal']).default('info'),
  SANDBUS_HEALTH_ADDRESS: hostPort.nullable().default(null),
  OTEL_EXPORTER_OTLP_ENDPOINT: z.url().nullable().default(null),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: z.url().nullable().default(null),
  OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: z.url().nullable().default(null),
  OTEL_METRICS_EXPORTER: z.enum(['otlp', 'none']).default('otlp'),
  OTEL_METRIC_EXPORT_INTERVAL: wholeNumber(1).default(60_000),
};

export type Environment = Readonly<Record<string, string | undefined>>;

/** Parses, or throws one UsageError that names every fault. The result is frozen. */
export function loadConfig<S extends z.ZodRawShape>(
  shape: S,
  environment: Environment = process.env,
): Readonly<z.infer<z.ZodObject<S>>> {
  const faults = unknownVariables(environment);
  const present = Object.entries(environment).filter(
    ([key, value]) => key in shape && value !== undefined && value !== '',
  );
  const result = z.object(shape).safeParse(Object.fromEntries(present));
  for (const issue of result.error?.issues ?? []) faults.push(`${issue.path.join('.')}: ${issue.message}`);
  if (faults.length > 0 || !result.success)
    throw new UsageError(`configuration is wrong:\n${faults.map((fault) => `  ${fault}`).join('\n')}`);
  return Object.freeze(result.data) as Readonly<z.infer<z.ZodObject<S>>>;
}

function unknownVariables(environment: Environment): string[] {
  return Object.keys(environment)
    .filter((key) => key.startsWith('SANDBUS_') && !(key in knownVariables))
    .map((key) => `${key}: unknown variable; \`sandbus help environment\` lists those there are`);
}

/** A whole number of at least `least`, written in digits. */
export function wholeNumber(least: number) {
  return z
    .string()
    .regex(/^\d+$/, 'must be a whole number')
    .transform(Number)
    .refine((n) => n >= least, `must be at least ${least}`);
}

export const positiveNumber = z
  .string()
  .transform(Number)
  .refine((n) => n > 0 && Number.isFinite(n), 'must be a number above 0');

/** No service has any use for the keys that sign. */
const passedOn =
  /^(SANDBUS_(?!ROOT_KEY$|SIGNING_KEY$)|OTEL_|LC_|PGPASSFILE$|PGSSL)|^(PATH|HOME|LANG|TZ|TMPDIR)$/;

/** What a service that we start gets to see of our environment, with `overrides` on top. */
export function serviceEnvironment(
  overrides: Environment,
  environment: Environment = process.env,
): Record<string, string> {
  const merged = Object.entries({ ...environment, ...overrides });
  return Object.fromEntries(
    merged.flatMap(([key, value]) => (value !== undefined && passedOn.test(key) ? [[key, value]] : [])),
  );
}

/** Files and programs that belong to this installation. */
export const installation = {
  root,
  launcher: join(root, 'sandbox-runtime/build/launcher'),
  hostname: hostname(),
};
