/** What the command line takes from the environment. */
import { existsSync } from 'node:fs';
import { z } from 'zod';
import { logKeyFiles } from '../ledger/log-key.ts';
import { ledgerFileIn } from '../ledger/open.ts';
import { queryTokensFile, tenantCredentials } from '../platform/access-paths.ts';
import { commonShape, installation, loadConfig } from '../platform/config.ts';
import { serviceKeyFiles } from '../platform/service-keys.ts';
import { isTenant } from '../platform/topology.ts';
import { trustFilesOf, trustShape } from '../trust-store/config.ts';

const shape = {
  ...commonShape,
  SANDBUS_TENANT: z.string().min(1).default('default'),
  ...trustShape,
  SANDBUS_ROOT_KEY: z.string().min(1).nullable().default(null),
  SANDBUS_SIGNING_KEY: z.string().min(1).nullable().default(null),
  SANDBUS_LEDGER_URL: z.string().min(1).nullable().default(null),
  SANDBUS_LEDGER_VERIFIER_KEY: z.string().min(1).nullable().default(null),
  SANDBUS_LAUNCHER: z.string().min(1).default(installation.launcher),
  SANDBUS_PYTHON: z.string().min(1).default('/usr/bin/python3'),
  SANDBUS_RUBY: z.string().min(1).default('/usr/bin/ruby'),
  SANDBUS_BASH: z.string().min(1).default('/usr/bin/bash'),
  SANDBUS_NODE: z.string().min(1).default(process.execPath),
};

/** `tenant` takes the place of SANDBUS_TENANT. */
export function loadCliConfig(tenant?: string) {
  const config = loadConfig(shape);
  const asTenant = tenant ?? config.SANDBUS_TENANT;
  const files = trustFilesOf(config);
  return Object.freeze({
    natsUrl: config.SANDBUS_NATS_URL,
    credentials: config.SANDBUS_NATS_CREDS ?? ownCredentials(config.SANDBUS_STATE_DIR, asTenant),
    tenant: asTenant,
    stateDir: config.SANDBUS_STATE_DIR,
    trustStore: files.trustStore,
    trustRoot: files.root,
    policy: files.policy,
    rootKey: config.SANDBUS_ROOT_KEY,
    signingKey: config.SANDBUS_SIGNING_KEY,
    /** Of the audit service on this machine. */
    ledger: config.SANDBUS_LEDGER_URL ?? ledgerFileIn(config.SANDBUS_STATE_DIR),
    ledgerKey: config.SANDBUS_LEDGER_VERIFIER_KEY ?? logKeyFiles(config.SANDBUS_STATE_DIR).verifierKey,
    /** Public keys of the services. */
    serviceKeys: config.SANDBUS_SERVICE_KEYS ?? serviceKeyFiles(config.SANDBUS_STATE_DIR, 'audit').keyring,
    launcher: config.SANDBUS_LAUNCHER,
    interpreters: {
      python: config.SANDBUS_PYTHON,
      ruby: config.SANDBUS_RUBY,
      bash: config.SANDBUS_BASH,
      node: config.SANDBUS_NODE,
    },
  });
}

/** Where the digests of query tokens are kept: where the audit service of this state folder looks for them. */
export function loadQueryTokensFile(): string {
  const config = loadConfig({ ...shape, SANDBUS_QUERY_TOKENS: z.string().min(1).nullable().default(null) });
  return config.SANDBUS_QUERY_TOKENS ?? queryTokensFile(config.SANDBUS_STATE_DIR);
}

/** For what an operator asks of the services; the credentials are those that are set, and no tenant's. */
export function loadOperatorConfig(tenant?: string) {
  const config = loadConfig(shape);
  return {
    natsUrl: config.SANDBUS_NATS_URL,
    credentials: config.SANDBUS_NATS_CREDS,
    tenant: tenant ?? config.SANDBUS_TENANT,
    stateDir: config.SANDBUS_STATE_DIR,
  };
}

/** Those that `sandbus up` on this machine has made for the tenant. */
function ownCredentials(stateDir: string, tenant: string): string | null {
  const file = tenantCredentials(stateDir, tenant);
  return isTenant(tenant) && existsSync(file) ? file : null;
}

export type CliConfig = ReturnType<typeof loadCliConfig>;

/** The environment of the tools that the command line starts: nothing but where to find programs. */
export const toolEnvironment = (): Record<string, string> => ({
  PATH: process.env.PATH ?? '/usr/bin:/bin',
  LANG: 'C.UTF-8',
});

/** For services that must not touch what the user has: whatever names a key, a store or a ledger falls away. */
export const nobodysState: Readonly<Record<string, undefined>> = Object.fromEntries(
  [
    'SANDBUS_TRUST_STORE',
    'SANDBUS_TRUST_ROOT',
    'SANDBUS_POLICY',
    'SANDBUS_SERVICE_KEYS',
    'SANDBUS_EVENT_KEY',
    'SANDBUS_LEDGER_URL',
    'SANDBUS_LEDGER_KEY',
    'SANDBUS_LEDGER_VERIFIER_KEY',
    'SANDBUS_QUERY_TOKENS',
    'SANDBUS_REPLICAS',
  ].map((name) => [name, undefined]),
);
