/** `sandbus trust init | add | list | revoke | renew`. */
import type { Command } from 'commander';
import { UsageError } from '../platform/errors.ts';
import type { TrustStoreContent } from '../trust/index.ts';
import { define, exitsWith, many, once } from './command.ts';
import { formatTime, parseCount, parseInstant } from './quantities.ts';

interface StoreOption {
  readonly store?: string;
  readonly json?: true;
}

const storeHelp = 'default: SANDBUS_TRUST_STORE, or trust.json in the state folder';
const year = '365d';

export function registerTrust(program: Command): void {
  const trust = program
    .command('trust')
    .summary('whose signatures count, for what, until when')
    .description('Changes the trust store file. Services notice a new version by themselves.');
  registerInit(trust);
  registerAdd(trust);
  registerList(trust);
  registerRevoke(trust);
  registerRenew(trust);
}

const when = (option: string) => once(option, (text) => parseInstant(text, Date.now()));

function registerInit(trust: Command): void {
  define(trust, {
    usage: 'init',
    summary: 'make a trust store that trusts nobody yet',
    examples: ['sandbus trust init', 'sandbus trust init --threshold 2 --expires 180d'],
  })
    .option('--store <file>', storeHelp)
    .option(
      '--expires <when>',
      `nothing runs after this time until renewed (default: ${year})`,
      when('--expires'),
    )
    .option(
      '--threshold <number>',
      'different owners that must sign a plugin (default: 1)',
      once('--threshold', parseCount),
    )
    .action(exitsWith(init));
}

async function init(options: StoreOption & { expires?: number; threshold?: number }): Promise<undefined> {
  const { initStore } = await import('./trust-file.ts');
  const path = await storePath(options);
  const content = await initStore(
    path,
    options.expires ?? parseInstant(year, Date.now()),
    options.threshold ?? 1,
  );
  await tell(options, path, content, 'made; it trusts nobody yet: `sandbus trust add` adds a key');
}

interface AddOptions extends StoreOption {
  readonly owner: string;
  readonly plugins?: readonly string[];
  readonly tenants?: readonly string[];
  readonly gpu?: true;
  readonly network?: true;
  readonly expires?: number;
  readonly notBefore?: number;
}

function registerAdd(trust: Command): void {
  const text = (value: string) => value;
  define(trust, {
    usage: 'add <publickey>',
    summary: 'trust a public key',
    examples: [
      "sandbus trust add me.pem.pub --owner 'Ada Lovelace'",
      "sandbus trust add ci.pub --owner CI --plugins 'build-*' --plugins 'test-*' --expires 30d",
    ],
  })
    .requiredOption('--owner <name>', 'who holds the key')
    .option('--store <file>', storeHelp)
    .option(
      '--plugins <pattern>',
      'plugin files that it may sign, * and ? allowed; repeatable (default: *)',
      many('--plugins', text),
    )
    .option(
      '--tenants <pattern>',
      'tenants that it may sign for; repeatable (default: *)',
      many('--tenants', text),
    )
    .option('--gpu', 'it may sign GPU plugins')
    .option('--network', 'it may sign plugins that use the network')
    .option('--not-before <when>', 'counts only from this time (default: now)', when('--not-before'))
    .option('--expires <when>', `counts no more at this time (default: ${year})`, when('--expires'))
    .action(exitsWith(add));
}

async function add(publicKeyFile: string, options: AddOptions): Promise<undefined> {
  const { addKey } = await import('./trust-file.ts');
  const path = await storePath(options);
  const { keyId, content } = await addKey(path, {
    publicKeyFile,
    owner: options.owner,
    plugins: options.plugins ?? ['*'],
    tenants: options.tenants ?? ['*'],
    gpu: options.gpu ?? false,
    network: options.network ?? false,
    notBeforeMs: options.notBefore ?? Date.now(),
    expiresMs: options.expires ?? parseInstant(year, Date.now()),
  });
  await tell(options, path, content, `now trusts key ${keyId} of ${options.owner}`, { keyId });
}

function registerList(trust: Command): void {
  define(trust, { usage: 'list', summary: 'the keys, and what is revoked', examples: ['sandbus trust list'] })
    .option('--store <file>', storeHelp)
    .action(exitsWith(list));
}

async function list(options: StoreOption): Promise<undefined> {
  const { keyIdOfStored, readStoreContent } = await import('./trust-file.ts');
  const { print, printJson } = await import('./output.ts');
  const { renderTable } = await import('./table.ts');
  const path = await storePath(options);
  const content = await readStoreContent(path);
  const keys = content.keys.map((key) => ({ keyId: keyIdOfStored(key), ...key }));
  if (options.json) return printJson({ file: path, ...content, keys }) as undefined;
  const rows = keys.map((key) => [
    key.keyId ?? 'unreadable',
    key.owner,
    key.scope.plugins.join(' '),
    key.scope.tenants.join(' '),
    [key.scope.gpu ? 'gpu' : '', key.scope.network ? 'network' : ''].filter(Boolean).join(' ') || '-',
    key.expires.slice(0, 10),
    content.revokedKeys.includes(key.keyId ?? '') ? 'revoked' : '',
  ]);
  const titles = ['KEY', 'OWNER', 'PLUGINS', 'TENANTS', 'MAY SIGN', 'EXPIRES', ''];
  print(
    `${path}: version ${content.version}, expires ${formatTime(Date.parse(content.expires))} UTC, threshold ${content.threshold}\n`,
  );
  print(
    rows.length === 0
      ? 'no keys\n'
      : renderTable(
          titles.map((title) => ({ title })),
          rows,
        ),
  );
  for (const digest of content.revokedDigests) print(`revoked file: SHA-256 ${digest}\n`);
}

function registerRevoke(trust: Command): void {
  define(trust, {
    usage: 'revoke [keyid]',
    summary: 'revoke a key, or one plugin file whoever signed it',
    description:
      'Revocation counts when a job starts, not only when it is submitted: queued jobs are rejected too.',
    examples: ['sandbus trust revoke 1f3c…', 'sandbus trust revoke --digest 9b74…'],
  })
    .option('--digest <sha256>', 'SHA-256 of a plugin file')
    .option('--store <file>', storeHelp)
    .action(exitsWith(revoke));
}

async function revoke(
  keyId: string | undefined,
  options: StoreOption & { digest?: string },
): Promise<undefined> {
  const { withRevokedDigest, withRevokedKey } = await import('../trust/index.ts');
  const { changeStore, keyIdOfStored } = await import('./trust-file.ts');
  const { digest } = options;
  if ((keyId === undefined) === (digest === undefined))
    throw new UsageError('say what to revoke: a key id, or --digest with the SHA-256 of a plugin file');
  const path = await storePath(options);
  let what = `file ${digest}`;
  const content = await changeStore(path, (store) => {
    if (digest !== undefined) return withRevokedDigest(store, digest);
    const known = store.keys.map(keyIdOfStored).filter((id) => id?.startsWith(keyId ?? ''));
    if (known.length > 1)
      throw new UsageError(`${known.length} keys begin with ${keyId}: give more of the key id`);
    const revoked = known[0] ?? keyId ?? '';
    what = `key ${revoked}`;
    return withRevokedKey(store, revoked);
  });
  await tell(options, path, content, `now refuses ${what}`);
}

function registerRenew(trust: Command): void {
  define(trust, {
    usage: 'renew',
    summary: 'give the trust store a later end date',
    examples: ['sandbus trust renew --expires 365d'],
  })
    .option('--store <file>', storeHelp)
    .option('--expires <when>', `the new end date (default: ${year})`, when('--expires'))
    .action(exitsWith(renew));
}

async function renew(options: StoreOption & { expires?: number }): Promise<undefined> {
  const { withExpiry } = await import('../trust/index.ts');
  const { changeStore } = await import('./trust-file.ts');
  const path = await storePath(options);
  const expiresMs = options.expires ?? parseInstant(year, Date.now());
  const content = await changeStore(path, (store) => withExpiry(store, expiresMs));
  await tell(options, path, content, `now expires ${formatTime(expiresMs)} UTC`);
}

async function storePath(options: StoreOption): Promise<string> {
  if (options.store !== undefined) return options.store;
  const { loadCliConfig } = await import('./config.ts');
  return loadCliConfig().trustStore;
}

async function tell(
  options: StoreOption,
  path: string,
  content: TrustStoreContent,
  what: string,
  more: object = {},
) {
  const { print, printJson } = await import('./output.ts');
  if (options.json) printJson({ file: path, version: content.version, expires: content.expires, ...more });
  else print(`${path}, version ${content.version}: ${what}\n`);
}
