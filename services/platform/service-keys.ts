/**
 * The files with the services' event keys: one private key for each service, and one keyring with the public keys of
 * all. Made by deployment; services only read them.
 *
 * A key is changed without a pause in two steps: the new public key joins the old one in the keyring, which is brought
 * to every machine; then the service's private key file is replaced. Both are read again when they change. The old
 * public key leaves the keyring when nothing signed with it is on the bus any more.
 */
import { createPrivateKey, createPublicKey, generateKeyPairSync } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf, UsageError } from './errors.ts';
import type { EventKeyFiles, KeyringContent } from './event-keys.ts';
import { keyIdOf, parseKeyringContent } from './event-keys.ts';
import { writeFileSafely } from './files.ts';
import type { ServiceName } from './topology.ts';
import { serviceNames } from './topology.ts';

export function serviceKeyFiles(stateDir: string, service: ServiceName): EventKeyFiles {
  return {
    privateKey: join(stateDir, 'keys', `${service}.pem`),
    keyring: join(stateDir, 'service-keys.json'),
  };
}

/** Makes the keyring and every private key, unless the keyring is there. Says whether it made them. */
export async function ensureServiceKeys(stateDir: string): Promise<boolean> {
  const { keyring } = serviceKeyFiles(stateDir, 'audit');
  if (existsSync(keyring)) return false;
  const services = {} as Record<ServiceName, string[]>;
  for (const service of serviceNames) {
    const { publicPem, privatePem } = newKeyPair();
    await writeFileSafely(serviceKeyFiles(stateDir, service).privateKey, privatePem, 0o600);
    services[service] = [publicPem];
  }
  await writeKeyring(keyring, { services });
  return true;
}

/** First step: a new key that is known but not yet used. Returns its id. */
export async function stageServiceKey(stateDir: string, service: ServiceName): Promise<string> {
  const files = serviceKeyFiles(stateDir, service);
  const content = await readKeyring(files.keyring);
  if (content.services[service].length > 1)
    throw new UsageError(
      `${service} has two keys already: \`sandbus service-keys retire ${service}\` forgets the one that is not in use`,
    );
  const { publicPem, privatePem } = newKeyPair();
  await writeFileSafely(staged(files), privatePem, 0o600);
  content.services[service].push(publicPem);
  await writeKeyring(files.keyring, content);
  return idOfPem(publicPem);
}

/** Second step: the service signs with the key that was staged. Returns its id. */
export async function activateServiceKey(stateDir: string, service: ServiceName): Promise<string> {
  const files = serviceKeyFiles(stateDir, service);
  const pem = await readFile(staged(files)).catch(() => null);
  if (pem === null)
    throw new UsageError(`${service} has no new key: \`sandbus service-keys rotate\` makes one`);
  await rename(staged(files), files.privateKey);
  return keyIdOf(createPrivateKey(pem));
}

/** Last step: only the key in use stays in the keyring. Returns the ids that left it. */
export async function retireServiceKeys(stateDir: string, service: ServiceName): Promise<string[]> {
  const files = serviceKeyFiles(stateDir, service);
  const content = await readKeyring(files.keyring);
  const inUse = keyIdOf(createPrivateKey(await readFile(files.privateKey)));
  const [kept, left] = [content.services[service], content.services[service]].map((pems, index) =>
    pems.filter((pem) => (idOfPem(pem) === inUse) === (index === 0)),
  ) as [string[], string[]];
  if (kept.length === 0)
    throw new UsageError(`the key in ${files.privateKey} is not in ${files.keyring}: nothing was changed`);
  content.services[service] = kept;
  await writeKeyring(files.keyring, content);
  return left.map(idOfPem);
}

export async function readKeyring(file: string): Promise<KeyringContent> {
  try {
    return parseKeyringContent(await readFile(file));
  } catch (error) {
    throw new UsageError(`cannot use the keyring ${file}: ${messageOf(error)}`);
  }
}

export const idOfPem = (pem: string): string => keyIdOf(createPublicKey(pem));

const staged = (files: EventKeyFiles): string => `${files.privateKey}.new`;

/** An Ed25519 key, as PEM. */
export function newKeyPair(): { publicPem: string; privatePem: string } {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519', {
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  });
  return { publicPem: publicKey, privatePem: privateKey };
}

function writeKeyring(file: string, content: KeyringContent): Promise<void> {
  return writeFileSafely(file, `${JSON.stringify(content, null, 2)}\n`, 0o644);
}
