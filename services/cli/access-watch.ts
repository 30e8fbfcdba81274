/** The embedded server follows the list of who is let in: a tenant that is added or removed needs no restart. */
import { statSync } from 'node:fs';
import { readAccess } from '../platform/access.ts';
import { accessFile } from '../platform/access-paths.ts';
import { messageOf } from '../platform/errors.ts';
import type { Access } from '../platform/nats-accounts.ts';
import { renderAccounts } from '../platform/nats-accounts.ts';
import type { NatsServer } from '../platform/nats-server.ts';

const lookMs = 500;

/**
 * In two steps. A server matches what an account imports before the others have their new exports, so that on 2.9.10 a new
 * account's requests reach nobody until the configuration is read a second time; only then may its user connect.
 */
async function follow(nats: Pick<NatsServer, 'setAccounts'>, before: Access, access: Access): Promise<void> {
  await nats.setAccounts(renderAccounts(access, (tenant) => before.tenants[tenant] !== undefined));
  await nats.setAccounts(renderAccounts(access));
}

/** `inForce` is what the server has. Returns its stop. A list that cannot be used leaves the one before in force. */
export function watchAccess(
  stateDir: string,
  inForce: Access,
  nats: Pick<NatsServer, 'setAccounts'>,
  onEvent: (text: string) => void,
): () => void {
  const stampOf = () => {
    const stat = statSync(accessFile(stateDir), { bigint: true, throwIfNoEntry: false });
    return `${stat?.ino}:${stat?.mtimeNs}:${stat?.size}`;
  };
  let seen = stampOf();
  let current = inForce;
  let busy = false;
  const look = async () => {
    const stamp = stampOf();
    if (stamp === seen || busy) return;
    seen = stamp;
    busy = true;
    try {
      const access = await readAccess(stateDir);
      await follow(nats, current, access);
      current = access;
      onEvent('the list of tenants has changed: the server follows it');
    } catch (error) {
      onEvent(`${messageOf(error)}; the old list stays in force`);
    } finally {
      busy = false;
    }
  };
  const timer = setInterval(() => void look(), lookMs);
  return () => clearInterval(timer);
}
