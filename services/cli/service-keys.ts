/** `sandbus service-keys list | rotate | activate | retire`: the keys with which services sign their events. */
import type { Command } from 'commander';
import { UsageError } from '../platform/errors.ts';
import type { ServiceName } from '../platform/topology.ts';
import { serviceNames } from '../platform/topology.ts';
import { stateDirOf, stateHelp } from './access.ts';
import { define, exitsWith } from './command.ts';

interface Options {
  readonly state?: string;
  readonly stage?: true;
  readonly json?: true;
}

export function registerServiceKeys(program: Command): void {
  const keys = program
    .command('service-keys')
    .summary('the keys with which services sign events; `access init` makes them (deployment)')
    .description(
      'Lists and changes the keys of services. Two keys of a service count at a time, so that a key is changed while ' +
        'everything runs. On several machines: rotate --stage, bring service-keys.json to all, activate, bring the new ' +
        'keys/<service>.pem to the service, and retire the old key when the jobs of that time have ended.',
    );
  const state = (command: Command) => command.option('--state <folder>', stateHelp);
  state(
    define(keys, { usage: 'list', summary: 'the keys that count', examples: ['sandbus service-keys list'] }),
  ).action(exitsWith(list));
  state(
    define(keys, {
      usage: 'rotate <service>',
      summary: 'a new key for a service; the old one counts until it is retired',
      examples: ['sandbus service-keys rotate verifier', 'sandbus service-keys rotate verifier --stage'],
    }),
  )
    .option('--stage', 'only make it known; `activate` has the service use it')
    .action(exitsWith(rotate));
  state(
    define(keys, {
      usage: 'activate <service>',
      summary: 'use the key that was staged',
      examples: ['sandbus service-keys activate verifier'],
    }),
  ).action(exitsWith(activate));
  state(
    define(keys, {
      usage: 'retire <service>',
      summary: 'only the key in use counts from now on',
      examples: ['sandbus service-keys retire verifier'],
    }),
  ).action(exitsWith(retire));
}

function serviceOf(name: string): ServiceName {
  const found = serviceNames.find((service) => service === name);
  if (found === undefined) throw new UsageError(`no service ${name}; there are ${serviceNames.join(', ')}`);
  return found;
}

async function list(options: Options): Promise<undefined> {
  const { idOfPem, readKeyring, serviceKeyFiles } = await import('../platform/service-keys.ts');
  const { print, printJson } = await import('./output.ts');
  const { renderTable } = await import('./table.ts');
  const { services } = await readKeyring(serviceKeyFiles(await stateDirOf(options), 'audit').keyring);
  const ids = serviceNames.map((service) => ({ service, keys: services[service].map(idOfPem) }));
  if (options.json) return void printJson(ids) as undefined;
  const rows = ids.map(({ service, keys }) => [service, keys.join(' ')]);
  print(renderTable([{ title: 'SERVICE' }, { title: 'KEY IDS' }], rows));
}

async function rotate(name: string, options: Options): Promise<undefined> {
  const { activateServiceKey, stageServiceKey } = await import('../platform/service-keys.ts');
  const service = serviceOf(name);
  const stateDir = await stateDirOf(options);
  const keyId = await changing(stateDir, async () => {
    const staged = await stageServiceKey(stateDir, service);
    if (options.stage !== true) await activateServiceKey(stateDir, service);
    return staged;
  });
  const state = options.stage === true ? 'is known, and not used yet' : 'is in use; the old one still counts';
  await tell(options, { service, keyId }, `key ${keyId} of ${service} ${state}`);
}

async function activate(name: string, options: Options): Promise<undefined> {
  const { activateServiceKey } = await import('../platform/service-keys.ts');
  const service = serviceOf(name);
  const stateDir = await stateDirOf(options);
  const keyId = await changing(stateDir, () => activateServiceKey(stateDir, service));
  await tell(options, { service, keyId }, `key ${keyId} of ${service} is in use; the old one still counts`);
}

async function retire(name: string, options: Options): Promise<undefined> {
  const { retireServiceKeys } = await import('../platform/service-keys.ts');
  const service = serviceOf(name);
  const stateDir = await stateDirOf(options);
  const retired = await changing(stateDir, () => retireServiceKeys(stateDir, service));
  const which = retired.length === 0 ? 'no other key' : `key ${retired.join(', ')}`;
  await tell(
    options,
    { service, retired },
    `${which} of ${service} counted beside the one in use; it is gone`,
  );
}

/** Of two commands at once each would write the keyring without the other's key. */
async function changing<T>(stateDir: string, change: () => Promise<T>): Promise<T> {
  const { readKeyring, serviceKeyFiles } = await import('../platform/service-keys.ts');
  const { withLock } = await import('./files.ts');
  const { keyring } = serviceKeyFiles(stateDir, 'audit');
  await readKeyring(keyring);
  return withLock(keyring, change);
}

async function tell(options: Options, facts: object, sentence: string): Promise<undefined> {
  const { printJson, say } = await import('./output.ts');
  if (options.json) printJson(facts);
  else say(sentence);
}
