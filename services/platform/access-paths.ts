/** Where deployment keeps who is let in on the bus, and the secrets that open it. */
import { join } from 'node:path';
import type { NatsUser } from './nats-permissions.ts';

export const accessFile = (stateDir: string): string => join(stateDir, 'access', 'access.json');
/** Of a service, or of deployment. */
export const userCredentials = (stateDir: string, user: NatsUser): string =>
  join(stateDir, 'access', `${user}.nk`);
export const tenantCredentials = (stateDir: string, tenant: string): string =>
  join(stateDir, 'access', 'tenants', `${tenant}.nk`);
/** Digests of the tokens that let somebody query the ledger. */
export const queryTokensFile = (stateDir: string): string => join(stateDir, 'query-tokens.json');
