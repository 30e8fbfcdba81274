/** For tests: an identity that speaks as every service, each with its own key. */

import type { EventIdentity, Signable } from './event-keys.ts';
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
  const authorOf = ({ id }: Signable): EventKeys => {
    const author = keys.get(id.split(':')[0] ?? '');
    if (author === undefined) throw new Error(`the id ${id} names no service`);
    return author;
  };
  const [, anyKeys] = all[0] ?? [];
  if (anyKeys === undefined) throw new Error('there are no services');
  return {
    service: null,
    sign: (event) => authorOf(event).sign(event),
    signAside: async (event) => authorOf(event).signAside(event),
    check: (message) => anyKeys.check(message),
    checkAside: (message) => anyKeys.checkAside(message),
    prepareAside: () => anyKeys.prepareAside(),
  };
}
