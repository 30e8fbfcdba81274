/** Makes the credentials of services and tenants, and the list of their public keys from which the server is configured. */
import { existsSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import { accessFile, tenantCredentials, userCredentials } from './access-paths.ts';
import { UsageError } from './errors.ts';
import { writeFileSafely } from './files.ts';
import { newUserKey } from './nats/nkeys.ts';
import type { Access } from './nats-accounts.ts';
import { parseAccess } from './nats-accounts.ts';
import type { NatsUser } from './nats-permissions.ts';
import { natsUsers } from './nats-permissions.ts';
import { isTenant, tenantRule } from './topology.ts';

export async function readAccess(stateDir: string): Promise<Access> {
  const file = accessFile(stateDir);
  const bytes = await readFile(file).catch(() => null);
  if (bytes === null)
    throw new UsageError(`there is no ${file}: \`sandbus access init\` makes it, and \`sandbus up\` too`);
  return parseAccess(bytes, file);
}

/** Makes credentials for the services, unless they are there, and for those of `tenants` that have none. */
export async function ensureAccess(stateDir: string, tenants: readonly string[]): Promise<Access> {
  if (!existsSync(accessFile(stateDir))) await makeUsers(stateDir);
  let access = await readAccess(stateDir);
  for (const tenant of tenants)
    if (access.tenants[tenant] === undefined) access = await addTenant(stateDir, tenant);
  return access;
}

async function makeUsers(stateDir: string): Promise<void> {
  const users = {} as Record<NatsUser, string>;
  for (const user of natsUsers) {
    const { publicKey, credentials } = newUserKey();
    await writeFileSafely(userCredentials(stateDir, user), credentials, 0o600);
    users[user] = publicKey;
  }
  await writeAccess(stateDir, { users, tenants: {} });
}

/** Throws UsageError when the tenant is there. Its credentials file is written first, then it is let in. */
export async function addTenant(stateDir: string, tenant: string): Promise<Access> {
  if (!isTenant(tenant)) throw new UsageError(`tenant ${tenant}: use ${tenantRule}`);
  const access = await readAccess(stateDir);
  if (access.tenants[tenant] !== undefined)
    throw new UsageError(
      `tenant ${tenant} is there; its credentials were written to ${tenantCredentials(stateDir, tenant)}`,
    );
  const { publicKey, credentials } = newUserKey();
  await writeFileSafely(tenantCredentials(stateDir, tenant), credentials, 0o600);
  return writeAccess(stateDir, { ...access, tenants: { ...access.tenants, [tenant]: [publicKey] } });
}

/** The tenant is let in no more; what it has submitted goes on. */
export async function removeTenant(stateDir: string, tenant: string): Promise<Access> {
  const access = await readAccess(stateDir);
  if (access.tenants[tenant] === undefined) throw new UsageError(`there is no tenant ${tenant}`);
  const { [tenant]: _gone, ...tenants } = access.tenants;
  const left = await writeAccess(stateDir, { ...access, tenants });
  await rm(tenantCredentials(stateDir, tenant), { force: true });
  return left;
}

async function writeAccess(stateDir: string, access: Access): Promise<Access> {
  await writeFileSafely(accessFile(stateDir), `${JSON.stringify(access, null, 2)}\n`, 0o644);
  return access;
}
