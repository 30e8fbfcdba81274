/** For tests: an identity that speaks as every service, each with its own key. */

import type { EventIdentity } from './event-keys.ts';
import { EventKeys } from './event-keys.ts';
import { createLogger } from './log.ts';
import { ensureServiceKeys, serviceKeyFiles } from './service-keys.ts';
import { serviceNames } from './topology.ts';

/** Makes the keys in `stateDir` unless they are there. The author of an event is whom its id names. */
export async function everyService(stateDir: string): Promise<EventIdentity> {
  await ensureServiceKeys(stateDir);
  const log = createLogger('test', 'fatal');
  const all = serviceNames.map(
    (name) => [name, EventKeys.load(name, serviceKeyFiles(stateDir, name), log)] as const,
  );
  const keys = new Map<string, EventKeys>(all);
  return {
    service: null,
    sign: (event) => {
      const author = keys.get(event.id.split(':')[0] ?? '');
      if (author === undefined) throw new Error(`the id ${event.id} names no service`);
      return author.sign(event);
    },
    check: (message) => all[0]?.[1].check(message) ?? { ok: false, fault: 'no-keyring', detail: '' },
  };
}
