/** What `sandbus trust init | add | remove | list | revoke | renew | rotate` do. */
import { UsageError } from '../platform/errors.ts';
import type { StoredKey, TrustStoreContent } from '../trust/index.ts';
import { withExpiry, withRevokedDigest, withRevokedKey } from '../trust/index.ts';
import { loadCliConfig } from './config.ts';
import { print, printJson } from './output.ts';
import { loadPrivateKey } from './private-keys.ts';
import { formatTime } from './quantities.ts';
import { expectValue, pinnedRoot } from './signing.ts';
import { renderTable } from './table.ts';
import {
  addKey,
  changeRoot,
  changeStore,
  initStore,
  keyIdOfStored,
  listedKeyId,
  loadRootKey,
  openStore,
  removeKey,
  replaceKey,
} from './trust-file.ts';

export interface StoreOption {
  readonly store?: string;
  readonly json?: true;
}

/** Of every command that changes the store. */
export interface ChangeOption extends StoreOption {
  readonly rootKey?: string;
}

interface Expiring {
  /** Milliseconds since 1970. */
  readonly expires: number;
}

export async function init(options: ChangeOption & Expiring & { threshold?: number }): Promise<undefined> {
  const { store: path, rootKey } = sourcesOf(options);
  const { expires: expiresMs, threshold = 1 } = options;
  const made = await initStore(path, { expiresMs, threshold, rootKey });
  const { content, rootKeyId, newRootKey, rootPublic } = made;
  const secret =
    newRootKey === null ? '' : `\nroot key:   ${newRootKey} (signs every change; keep it to yourself)`;
  const lines = `${secret}\npublic key: ${rootPublic} (services pin it)`;
  const what = `made, signed by root ${rootKeyId}; it trusts nobody yet: \`sandbus trust add\` adds a key${lines}`;
  tell(options, path, content, what, { rootKeyId, newRootKey, rootPublic });
}

export interface AddOptions extends ChangeOption {
  readonly owner: string;
  readonly replace?: true;
  readonly plugins?: readonly string[];
  readonly tenants?: readonly string[];
  readonly gpu?: true;
  readonly network?: true;
  readonly expires?: number;
  readonly notBefore?: number;
}

export async function add(publicKeyFile: string, options: AddOptions & Expiring): Promise<undefined> {
  const { path, root } = await openForChange(options);
  const change = options.replace ? replaceKey : addKey;
  const { keyId, was, is, content } = await change(path, root, {
    publicKeyFile,
    owner: options.owner,
    plugins: options.plugins ?? ['*'],
    tenants: options.tenants ?? ['*'],
    gpu: options.gpu ?? false,
    network: options.network ?? false,
    notBeforeMs: options.notBefore ?? Date.now(),
    expiresMs: options.expires,
  });
  if (was === null || is === null)
    tell(options, path, content, `now trusts key ${keyId} of ${options.owner}`, { keyId });
  else
    tell(options, path, content, `changed key ${keyId}\nwas: ${grant(was)}\nis:  ${grant(is)}`, {
      keyId,
      was,
      is,
    });
}

export async function remove(idPrefix: string, options: ChangeOption): Promise<undefined> {
  const { path, root } = await openForChange(options);
  const { keyId, was, content } = await removeKey(path, root, idPrefix);
  const revoked = content.revokedKeys.includes(keyId) ? ', which stays revoked' : '';
  const nobody = content.keys.length === 0 ? '; it trusts nobody any more, so nothing runs' : '';
  const what = `no longer lists key ${keyId} of ${was?.owner}${revoked}${nobody}`;
  tell(options, path, content, what, { keyId, was });
}

/** What an entry of the store allows, in one line. */
function grant({ owner, scope, notBefore, expires }: StoredKey): string {
  const more = mayAlsoSign(scope);
  return [
    owner,
    `plugins ${scope.plugins.join(' ')}`,
    `tenants ${scope.tenants.join(' ')}`,
    ...(more === '' ? [] : [more]),
    `${formatTime(Date.parse(notBefore))} to ${formatTime(Date.parse(expires))} UTC`,
  ].join(', ');
}

const mayAlsoSign = ({ gpu, network }: StoredKey['scope']): string =>
  [gpu ? 'gpu' : '', network ? 'network' : ''].filter(Boolean).join(' ');

export async function list(options: StoreOption): Promise<undefined> {
  const { store: path, root } = sourcesOf(options);
  const { content, rootLine } = await openStore(path, expectValue(pinnedRoot(root), path));
  const keys = content.keys.map((key) => ({ keyId: keyIdOfStored(key), ...key }));
  if (options.json) return printJson({ file: path, ...content, keys, roots: rootLine }) as undefined;
  const rows = keys.map((key) => [
    key.keyId ?? 'unreadable',
    key.owner,
    key.scope.plugins.join(' '),
    key.scope.tenants.join(' '),
    mayAlsoSign(key.scope) || '-',
    key.expires.slice(0, 10),
    standing(content, key),
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

/** Why a listed key does not count; empty where it does. */
function standing(content: TrustStoreContent, key: StoredKey & { keyId: string | null }): string {
  if (content.revokedKeys.includes(key.keyId ?? '')) return 'revoked';
  if (Date.now() >= Date.parse(key.expires)) return 'expired';
  return Date.now() < Date.parse(key.notBefore) ? `from ${key.notBefore.slice(0, 10)}` : '';
}

export async function revoke(
  keyId: string | undefined,
  options: ChangeOption & { digest?: string },
): Promise<undefined> {
  const { digest } = options;
  if ((keyId === undefined) === (digest === undefined))
    throw new UsageError('say what to revoke: a key id, or --digest with the SHA-256 of a plugin file');
  const { path, root } = await openForChange(options);
  const { what, content } = await changeStore(path, root, (store) => {
    if (digest !== undefined) return { what: `file ${digest}`, content: withRevokedDigest(store, digest) };
    const revoked = listedKeyId(store, keyId ?? '') ?? keyId ?? '';
    if (!/^[0-9a-f]{64}$/.test(revoked))
      throw new UsageError(
        `no listed key begins with ${keyId}; give the whole key id of one that is not listed`,
      );
    return { what: `key ${revoked}`, content: withRevokedKey(store, revoked) };
  });
  tell(options, path, content, `now refuses ${what}`);
}

export async function renew(options: ChangeOption & Expiring): Promise<undefined> {
  const { path, root } = await openForChange(options);
  const { expires } = options;
  const { content } = await changeStore(path, root, (store) => ({ content: withExpiry(store, expires) }));
  tell(options, path, content, `now expires ${formatTime(expires)} UTC`);
}

export async function rotate(options: ChangeOption & { newRootKey: string }): Promise<undefined> {
  const { path, root } = await openForChange(options);
  const next = await loadPrivateKey(options.newRootKey);
  const content = await changeRoot(path, root, next);
  const what = `now of root ${next.keyId}; sign further changes with --root-key ${options.newRootKey}`;
  tell(options, path, content, what, { rootKeyId: next.keyId, replacedRootKeyId: root.keyId });
}

/** Where the store, its root's private key (null: the usual place) and the pinned root are. */
function sourcesOf(options: ChangeOption) {
  const { trustStore, trustRoot, rootKey } = loadCliConfig();
  return { store: options.store ?? trustStore, root: trustRoot, rootKey: options.rootKey ?? rootKey };
}

async function openForChange(options: ChangeOption) {
  const { store, rootKey } = sourcesOf(options);
  return { path: store, root: await loadRootKey(store, rootKey) };
}

function tell(
  options: StoreOption,
  path: string,
  content: TrustStoreContent,
  what: string,
  more: object = {},
) {
  if (options.json) printJson({ file: path, version: content.version, expires: content.expires, ...more });
  else print(`${path}, version ${content.version}: ${what}\n`);
}
