/** A temporary folder with everything that a first system needs: a key, a trust store that trusts it, a policy. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { SigningKey } from '../../trust/index.ts';
import { encodePolicy } from '../../trust/index.ts';
import { defaultPolicy } from '../default-policy.ts';
import { loadPrivateKey } from '../private-keys.ts';
import { expectValue, makeKeyPair } from '../signing.ts';
import { addKey, initStore, loadRootKey } from '../trust-file.ts';

export interface Workplace {
  readonly folder: string;
  readonly stateDir: string;
  readonly key: SigningKey;
  remove(): Promise<void>;
}

const dayMs = 86_400_000;

export async function makeWorkplace(): Promise<Workplace> {
  const folder = await mkdtemp(join(tmpdir(), 'sandbus-demo-'));
  const remove = () => rm(folder, { recursive: true, force: true, maxRetries: 3 });
  try {
    const keyFile = join(folder, 'demo.pem');
    const { publicPath } = await makeKeyPair(keyFile);
    const stateDir = join(folder, 'state');
    await trustKey(join(stateDir, 'trust.json'), publicPath);
    const policy = expectValue(encodePolicy(defaultPolicy), 'policy');
    await writeFile(join(stateDir, 'policy.json'), policy, { mode: 0o600 });
    return { folder, stateDir, key: await loadPrivateKey(keyFile), remove };
  } catch (error) {
    await remove();
    throw error;
  }
}

async function trustKey(store: string, publicKeyFile: string): Promise<void> {
  const nowMs = Date.now();
  await initStore(store, { expiresMs: nowMs + dayMs, threshold: 1, rootKey: null });
  await addKey(store, await loadRootKey(store, null), {
    publicKeyFile,
    owner: 'Demo',
    plugins: ['*'],
    tenants: ['*'],
    gpu: false,
    network: false,
    notBeforeMs: nowMs - 1000,
    expiresMs: nowMs + dayMs,
  });
}
