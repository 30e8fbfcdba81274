/** The embedded server follows the list of who is let in: a tenant that is added or removed needs no restart. */
import { statSync } from 'node:fs';
import { readAccess } from '../platform/access.ts';
import { accessFile } from '../platform/access-paths.ts';
import { messageOf } from '../platform/errors.ts';
import { renderAccounts } from '../platform/nats-accounts.ts';
import type { NatsServer } from '../platform/nats-server.ts';

const lookMs = 500;

/** Returns its stop. A list that cannot be used leaves the one before in force. */
export function watchAccess(
  stateDir: string,
  nats: Pick<NatsServer, 'setAccounts'>,
  onEvent: (text: string) => void,
): () => void {
  const stampOf = () => {
    const stat = statSync(accessFile(stateDir), { bigint: true, throwIfNoEntry: false });
    return `${stat?.ino}:${stat?.mtimeNs}:${stat?.size}`;
  };
  let seen = stampOf();
  const timer = setInterval(() => {
    const stamp = stampOf();
    if (stamp === seen) return;
    seen = stamp;
    readAccess(stateDir)
      .then((access) => nats.setAccounts(renderAccounts(access)))
      .then(
        () => onEvent('the list of tenants has changed: the server follows it'),
        (error: unknown) => onEvent(`${messageOf(error)}; the old list stays in force`),
      );
  }, lookMs);
  return () => clearInterval(timer);
}
