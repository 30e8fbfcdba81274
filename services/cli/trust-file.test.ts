/** The trust store as a file that commands change. */
import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, it } from 'node:test';
import { UsageError } from '../platform/errors.ts';
import type { SigningKey } from '../trust/index.ts';
import { withExpiry, withRevokedKey } from '../trust/index.ts';
import { loadPrivateKey } from './private-keys.ts';
import { makeKeyPair } from './signing.ts';
import { addKey, changeStore, initStore, openStore, removeKey } from './trust-file.ts';

const dayMs = 86_400_000;
let folder: string;
let store: string;
let root: SigningKey;
const at = (name: string) => join(folder, name);
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sandbus-trust-file-'));
  store = at('trust.json');
  for (const owner of ['ada', 'bob', 'eve']) await makeKeyPair(at(`${owner}.pem`));
  await initStore(store, { expiresMs: Date.now() + dayMs, threshold: 1, rootKey: null });
  root = await loadPrivateKey(at('root.pem'));
});
after(() => rm(folder, { recursive: true, force: true }));

const usage = (message: RegExp) => (error: unknown) =>
  error instanceof UsageError && message.test(error.message);
const add = (file: string, owner: string) =>
  addKey(store, root, {
    publicKeyFile: at(file),
    owner,
    ...{ tenants: ['*'], plugins: ['*'], gpu: false, network: false },
    ...{ notBeforeMs: 1, expiresMs: Date.now() + dayMs },
  });
const versionNow = async () => (await openStore(store, root)).content.version;

it('gets a new version with each change', async () => {
  const before = await versionNow();
  const { keyId } = await add('ada.pem.pub', 'ada');
  await changeStore(store, root, (content) => ({ content: withExpiry(content, Date.now() + 2 * dayMs) }));
  await removeKey(store, root, keyId);
  assert.equal(await versionNow(), before + 3);
});

it('is changed by one after the other, also where an older version has left its lock', async () => {
  await writeFile(`${store}.lock`, '4711\n');
  const before = await versionNow();
  await Promise.all(['ada', 'bob', 'eve'].map((owner) => add(`${owner}.pem.pub`, owner)));
  const { content } = await openStore(store, root);
  assert.deepEqual(content.keys.map(({ owner }) => owner).sort(), ['ada', 'bob', 'eve']);
  assert.equal(content.version, before + 3);
});

it('is not changed to something that cannot be read', async () => {
  await assert.rejects(
    changeStore(store, root, (content) => ({ content: withRevokedKey(content, 'not an id') })),
    usage(/SHA-256/),
  );
  assert.deepEqual((await openStore(store, root)).content.revokedKeys, []);
});

it('does not take a private key, or the same key twice', async () => {
  await assert.rejects(add('bob.pem', 'bob'), usage(/PRIVATE key/));
  await assert.rejects(add('ada.pem.pub', 'ada'), usage(/is listed already, of ada until .*--replace/));
});

it('that is not there is not locked', async () => {
  const change = changeStore(at('absent.json'), root, (content) => ({ content }));
  await assert.rejects(change, usage(/there is no trust store/));
  assert.deepEqual(
    (await readdir(folder)).filter((name) => name.includes('absent')),
    [],
  );
});
