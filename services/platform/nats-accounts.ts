/**
 * The accounts of a NATS server, as its configuration says them. Users are nkeys in the configuration, not JWTs: the whole
 * of who may do what stands in one file that a person can read and compare; there is no operator key to keep and no
 * account server to run; and a server takes a new version on SIGHUP. Only public keys are in it.
 */
import { z } from 'zod';
import { UsageError } from './errors.ts';
import type { NatsUser, Permissions } from './nats-permissions.ts';
import { natsUsers, tenantImports, tenantPermissions, userPermissions } from './nats-permissions.ts';
import { isTenant } from './topology.ts';

const publicKey = z.string().regex(/^U[A-Z2-7]{55}$/, 'must be the public nkey of a user');

const accessShape = z.strictObject({
  /** Services and deployment → public nkey. */
  users: z.strictObject(
    Object.fromEntries(natsUsers.map((user) => [user, publicKey])) as Record<NatsUser, typeof publicKey>,
  ),
  /** Tenant → its public nkeys; several, so that one can be replaced without a pause. */
  tenants: z.record(z.string().refine(isTenant, 'must be a tenant'), z.array(publicKey).min(1).max(4)),
});

/** Who is let in, without any secret. */
export type Access = z.infer<typeof accessShape>;

/** Throws UsageError. `where` names the bytes. */
export function parseAccess(bytes: Uint8Array, where: string): Access {
  try {
    return accessShape.parse(JSON.parse(Buffer.from(bytes).toString('utf8')));
  } catch (error) {
    const detail = error instanceof z.ZodError ? z.prettifyError(error) : String(error);
    throw new UsageError(`cannot use ${where}: ${detail}`);
  }
}

const servicesAccount = 'sandbus';
const tenantAccount = (tenant: string): string => `tenant-${tenant}`;

/**
 * The part of a nats-server configuration that says who may do what. Tenants that are not `open` have their accounts and
 * no user yet.
 */
export function renderAccounts(access: Access, isOpen: (tenant: string) => boolean = () => true): string {
  const tenants = Object.keys(access.tenants).sort();
  const accounts = {
    [servicesAccount]: {
      jetstream: 'enabled',
      users: natsUsers.map((user) => nkeyUser(access.users[user], userPermissions(user))),
      exports: exportsTo(tenants),
    },
    ...Object.fromEntries(
      tenants.map((tenant) => [
        tenantAccount(tenant),
        tenantOf(tenant, isOpen(tenant) ? access.tenants[tenant] : []),
      ]),
    ),
  };
  const head = '# Made by Sandbus from the list of services and tenants: changes here are lost.\n';
  return `${head}accounts ${JSON.stringify(accounts, null, 2)}\n`;
}

/** Each subject once, with all who may have it: the checkpoints are everybody's. */
function exportsTo(tenants: readonly string[]): object[] {
  const granted = new Map<string, { kind: 'service' | 'stream'; subject: string; accounts: string[] }>();
  for (const tenant of tenants) {
    const { services, streams } = tenantImports(tenant);
    const all = [
      ...services.map((subject) => ({ kind: 'service' as const, subject })),
      ...streams.map((subject) => ({ kind: 'stream' as const, subject })),
    ];
    for (const one of all) {
      const known = granted.get(one.subject) ?? { ...one, accounts: [] };
      known.accounts.push(tenantAccount(tenant));
      granted.set(one.subject, known);
    }
  }
  return [...granted.values()].map(({ kind, subject, accounts }) => ({ [kind]: subject, accounts }));
}

function tenantOf(tenant: string, keys: readonly string[] = []): object {
  const { services, streams } = tenantImports(tenant);
  const from = (subject: string) => ({ account: servicesAccount, subject });
  return {
    users: keys.map((key) => nkeyUser(key, tenantPermissions(tenant))),
    imports: [
      ...services.map((subject) => ({ service: from(subject) })),
      ...streams.map((subject) => ({ stream: from(subject) })),
    ],
  };
}

function nkeyUser(nkey: string, { publish, subscribe, answers }: Permissions): object {
  const permissions = {
    publish: { allow: publish },
    subscribe: { allow: subscribe },
    ...(answers ? { allow_responses: { max: 1, expires: '60s' } } : {}),
  };
  return { nkey, permissions };
}
