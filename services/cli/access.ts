/** `sandbus access init | nats-config`, `sandbus tenant add | remove | list`: who is let in on the bus. */
import type { Command } from 'commander';
import { define, exitsWith } from './command.ts';

interface StateOption {
  readonly state?: string;
  readonly json?: true;
}

export const stateHelp = 'where keys and credentials are kept (SANDBUS_STATE_DIR)';

export function registerAccess(program: Command): void {
  const access = program
    .command('access')
    .summary('keys of the services, and the accounts of the NATS server (deployment)')
    .description('Makes what services need to reach the bus. `sandbus up` does all of this by itself.');
  define(access, {
    usage: 'init',
    summary: "make the services' NATS credentials and event keys, and a policy, where there are none",
    description:
      'Makes credentials for each service and for deployment, the keys with which services sign events, and a policy ' +
      'file to edit. What is there stays. Give each service its own two files, access/<service>.nk and keys/<service>.pem, and no other.',
    examples: ['sandbus access init --state .sandbus/compose'],
  })
    .option('--state <folder>', stateHelp)
    .action(exitsWith(init));
  define(access, {
    usage: 'nats-config',
    summary: 'print the accounts of the NATS server, to be included in its configuration',
    description:
      'Prints the accounts, users and permissions for nats-server. It holds public keys only. After a tenant was added or ' +
      'removed, write it again and have the server reload it: nats-server --signal reload, or SIGHUP.',
    examples: ['sandbus access nats-config --state .sandbus/compose > accounts.conf'],
  })
    .option('--state <folder>', stateHelp)
    .action(exitsWith(natsConfig));
}

export function registerTenant(program: Command): void {
  const tenant = program
    .command('tenant')
    .summary('who may submit jobs: each tenant has an account of its own on the bus')
    .description(
      'Adds and removes tenants. A running `sandbus up` follows at once; another NATS server gets the new ' +
        '`sandbus access nats-config`.',
    );
  define(tenant, {
    usage: 'add <name>',
    summary: 'let a tenant in, and write its credentials file',
    description:
      'Makes an account for the tenant and prints where its credentials are: the tenant names that file in ' +
      'SANDBUS_NATS_CREDS and itself in SANDBUS_TENANT. Who has the file is the tenant.',
    examples: ['sandbus tenant add acme', 'file=$(sandbus tenant add acme --json | jq -r .credentials)'],
  })
    .option('--state <folder>', stateHelp)
    .action(exitsWith(add));
  define(tenant, {
    usage: 'remove <name>',
    summary: 'let a tenant in no more; its jobs go on, its records stay',
    examples: ['sandbus tenant remove acme'],
  })
    .option('--state <folder>', stateHelp)
    .action(exitsWith(remove));
  define(tenant, {
    usage: 'list',
    summary: 'who is let in',
    examples: ['sandbus tenant list'],
  })
    .option('--state <folder>', stateHelp)
    .action(exitsWith(list));
}

export async function stateDirOf({ state }: StateOption): Promise<string> {
  if (state !== undefined) return state;
  const { loadCliConfig } = await import('./config.ts');
  return loadCliConfig().stateDir;
}

async function init(options: StateOption): Promise<undefined> {
  const { ensureLogKey, logKeyFiles } = await import('../ledger/log-key.ts');
  const { ensureAccess } = await import('../platform/access.ts');
  const { ensureServiceKeys } = await import('../platform/service-keys.ts');
  const { ensurePolicy } = await import('./default-policy.ts');
  const { printJson, say } = await import('./output.ts');
  const stateDir = await stateDirOf(options);
  await ensureServiceKeys(stateDir);
  await ensureLogKey(logKeyFiles(stateDir));
  const { users, tenants } = await ensureAccess(stateDir, []);
  const policy = await ensurePolicy(stateDir);
  if (policy !== null) say(`wrote ${policy}: the most that any job may ask for`);
  if (options.json) printJson({ state: stateDir, users, tenants: Object.keys(tenants) });
  else say(`${stateDir} has credentials and event keys for ${Object.keys(users).join(', ')}`);
}

async function natsConfig(options: StateOption): Promise<undefined> {
  const { readAccess } = await import('../platform/access.ts');
  const { renderAccounts } = await import('../platform/nats-accounts.ts');
  const { print, printJson } = await import('./output.ts');
  const text = renderAccounts(await readAccess(await stateDirOf(options)));
  if (options.json) printJson({ config: text });
  else print(text);
}

async function add(name: string, options: StateOption): Promise<undefined> {
  const { addTenant } = await import('../platform/access.ts');
  const { tenantCredentials } = await import('../platform/access-paths.ts');
  const { print, printJson } = await import('./output.ts');
  const stateDir = await stateDirOf(options);
  await changing(stateDir, () => addTenant(stateDir, name));
  const credentials = tenantCredentials(stateDir, name);
  if (options.json) printJson({ tenant: name, credentials });
  else print(`${credentials}\n`);
}

async function remove(name: string, options: StateOption): Promise<undefined> {
  const { removeTenant } = await import('../platform/access.ts');
  const { printJson, say } = await import('./output.ts');
  const stateDir = await stateDirOf(options);
  await changing(stateDir, () => removeTenant(stateDir, name));
  if (options.json) printJson({ tenant: name, removed: true });
  else say(`${name} is let in no more`);
}

/** Of two commands at once each would write the list without the other's tenant. */
async function changing<T>(stateDir: string, change: () => Promise<T>): Promise<T> {
  const { readAccess } = await import('../platform/access.ts');
  const { accessFile } = await import('../platform/access-paths.ts');
  const { withLock } = await import('./files.ts');
  await readAccess(stateDir);
  return withLock(accessFile(stateDir), change);
}

async function list(options: StateOption): Promise<undefined> {
  const { readAccess } = await import('../platform/access.ts');
  const { print, printJson } = await import('./output.ts');
  const { renderTable } = await import('./table.ts');
  const { tenants } = await readAccess(await stateDirOf(options));
  if (options.json) return void printJson(tenants) as undefined;
  const rows = Object.entries(tenants).map(([name, keys]) => [name, keys.join(' ')]);
  print(renderTable([{ title: 'TENANT' }, { title: 'PUBLIC KEYS' }], rows));
}
