/** `sandbus trust init | add | list | revoke | renew | rotate`. */
import type { Command } from 'commander';
import { UsageError } from '../platform/errors.ts';
import type { TrustStoreContent } from '../trust/index.ts';
import { define, exitsWith, many, once } from './command.ts';
import { formatTime, parseCount, parseEnd, parseInstant } from './quantities.ts';

interface StoreOption {
  readonly store?: string;
  readonly json?: true;
}

/** Of every command that changes the store. */
interface ChangeOption extends StoreOption {
  readonly rootKey?: string;
}

const storeHelp = 'default: SANDBUS_TRUST_STORE, or trust.json in the state folder';
const rootKeyHelp =
  'private key of the root, a file or fd:N (default: SANDBUS_ROOT_KEY, or root.pem beside the store)';
const year = '365d';

export function registerTrust(program: Command): void {
  const trust = program
    .command('trust')
    .summary('whose signatures count, for what, until when')
    .description(
      'Changes the trust store file, and signs each version with the root key. Services notice a new one by themselves.',
    );
  registerInit(trust);
  registerAdd(trust);
  registerList(trust);
  registerRevoke(trust);
  registerRenew(trust);
  registerRotate(trust);
}

const when = (option: string) => once(option, (text) => parseInstant(text, Date.now()));
const end = (option: string) => once(option, (text) => parseEnd(text, Date.now()));

function registerInit(trust: Command): void {
  define(trust, {
    usage: 'init',
    summary: 'make a trust store that trusts nobody yet, and its root key',
    description:
      'Makes the root key pair root.pem and root.pub beside the store, unless they are there or --root-key names one, ' +
      'and a first store that it signs. Services pin root.pub; root.pem is needed for changes only.',
    examples: ['sandbus trust init', 'sandbus trust init --threshold 2 --expires 180d'],
  })
    .option('--store <file>', storeHelp)
    .option(
      '--root-key <key>',
      'an existing root key, a file or fd:N (default: SANDBUS_ROOT_KEY, or a new one)',
    )
    .option(
      '--expires <when>',
      `nothing runs after this time until renewed (default: ${year})`,
      end('--expires'),
    )
    .option(
      '--threshold <number>',
      'different owners that must sign a plugin (default: 1)',
      once('--threshold', parseCount),
    )
    .action(exitsWith(init));
}

async function init(options: ChangeOption & { expires?: number; threshold?: number }): Promise<undefined> {
  const { initStore } = await import('./trust-file.ts');
  const { store: path, rootKey } = await sourcesOf(options);
  const made = await initStore(path, {
    expiresMs: options.expires ?? parseInstant(year, Date.now()),
    threshold: options.threshold ?? 1,
    rootKey,
  });
  const { content, rootKeyId, newRootKey, rootPublic } = made;
  const secret =
    newRootKey === null ? '' : `\nroot key:   ${newRootKey} (signs every change; keep it to yourself)`;
  const lines = `${secret}\npublic key: ${rootPublic} (services pin it)`;
  const what = `made, signed by root ${rootKeyId}; it trusts nobody yet: \`sandbus trust add\` adds a key${lines}`;
  await tell(options, path, content, what, { rootKeyId, newRootKey, rootPublic });
}

interface AddOptions extends ChangeOption {
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
    .option('--root-key <key>', rootKeyHelp)
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
    .option('--expires <when>', `counts no more at this time (default: ${year})`, end('--expires'))
    .action(exitsWith(add));
}

async function add(publicKeyFile: string, options: AddOptions): Promise<undefined> {
  const { addKey } = await import('./trust-file.ts');
  const { path, root } = await openForChange(options);
  const { keyId, content } = await addKey(path, root, {
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
  const { keyIdOfStored, openStore } = await import('./trust-file.ts');
  const { expectValue, pinnedRoot } = await import('./signing.ts');
  const { print, printJson } = await import('./output.ts');
  const { renderTable } = await import('./table.ts');
  const { store: path, root } = await sourcesOf(options);
  const { content, rootLine } = await openStore(path, expectValue(pinnedRoot(root), path));
  const keys = content.keys.map((key) => ({ keyId: keyIdOfStored(key), ...key }));
  if (options.json) return printJson({ file: path, ...content, keys, roots: rootLine }) as undefined;
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
    `${path}: version ${content.version}, expires ${formatTime(Date.parse(content.expires))} UTC, threshold ${content.threshold}\nsigned by root ${rootLine.at(-1)}${rootLine.length > 1 ? `, after ${rootLine.slice(0, -1).join(', ')}` : ''}\n`,
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
    description: 'Counts at once: jobs that wait are rejected, and running ones are ended.',
    examples: ['sandbus trust revoke 1f3c…', 'sandbus trust revoke --digest 9b74…'],
  })
    .option('--digest <sha256>', 'SHA-256 of a plugin file')
    .option('--store <file>', storeHelp)
    .option('--root-key <key>', rootKeyHelp)
    .action(exitsWith(revoke));
}

async function revoke(
  keyId: string | undefined,
  options: ChangeOption & { digest?: string },
): Promise<undefined> {
  const { withRevokedDigest, withRevokedKey } = await import('../trust/index.ts');
  const { changeStore, keyIdOfStored } = await import('./trust-file.ts');
  const { digest } = options;
  if ((keyId === undefined) === (digest === undefined))
    throw new UsageError('say what to revoke: a key id, or --digest with the SHA-256 of a plugin file');
  const { path, root } = await openForChange(options);
  let what = `file ${digest}`;
  const content = await changeStore(path, root, (store) => {
    if (digest !== undefined) return withRevokedDigest(store, digest);
    const known = store.keys.map(keyIdOfStored).filter((id) => id?.startsWith(keyId ?? ''));
    if (known.length > 1)
      throw new UsageError(`${known.length} keys begin with ${keyId}: give more of the key id`);
    const revoked = known[0] ?? keyId ?? '';
    if (!/^[0-9a-f]{64}$/.test(revoked))
      throw new UsageError(
        `no listed key begins with ${keyId}; give the whole key id of one that is not listed`,
      );
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
    .option('--root-key <key>', rootKeyHelp)
    .option('--expires <when>', `the new end date (default: ${year})`, end('--expires'))
    .action(exitsWith(renew));
}

async function renew(options: ChangeOption & { expires?: number }): Promise<undefined> {
  const { withExpiry } = await import('../trust/index.ts');
  const { changeStore } = await import('./trust-file.ts');
  const { path, root } = await openForChange(options);
  const expiresMs = options.expires ?? parseInstant(year, Date.now());
  const content = await changeStore(path, root, (store) => withExpiry(store, expiresMs));
  await tell(options, path, content, `now expires ${formatTime(expiresMs)} UTC`);
}

function registerRotate(trust: Command): void {
  define(trust, {
    usage: 'rotate',
    summary: 'hand the trust store to a new root key',
    description:
      'The old root and the new one both sign the rotation. Services that pin the old root follow it by themselves; ' +
      'what the old root signs from now on is refused.',
    examples: ['sandbus keygen --out root-2.pem', 'sandbus trust rotate --new-root-key root-2.pem'],
  })
    .requiredOption('--new-root-key <key>', 'private key of the new root, a file or fd:N')
    .option('--root-key <key>', rootKeyHelp)
    .option('--store <file>', storeHelp)
    .action(exitsWith(rotate));
}

async function rotate(options: ChangeOption & { newRootKey: string }): Promise<undefined> {
  const { changeRoot } = await import('./trust-file.ts');
  const { loadPrivateKey } = await import('./private-keys.ts');
  const { path, root } = await openForChange(options);
  const next = await loadPrivateKey(options.newRootKey);
  const content = await changeRoot(path, root, next);
  const what = `now of root ${next.keyId}; sign further changes with --root-key ${options.newRootKey}`;
  await tell(options, path, content, what, { rootKeyId: next.keyId, replacedRootKeyId: root.keyId });
}

/** Where the store, its root's private key (null: the usual place) and the pinned root are. */
async function sourcesOf(options: ChangeOption) {
  const { loadCliConfig } = await import('./config.ts');
  const { trustStore, trustRoot, rootKey } = loadCliConfig();
  return { store: options.store ?? trustStore, root: trustRoot, rootKey: options.rootKey ?? rootKey };
}

async function openForChange(options: ChangeOption) {
  const { loadRootKey } = await import('./trust-file.ts');
  const { store, rootKey } = await sourcesOf(options);
  return { path: store, root: await loadRootKey(store, rootKey) };
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
