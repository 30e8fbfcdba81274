/**
 * Dead letters of all tenants, and those that no tenant may see since they belong to none: what came under a subject
 * without a valid tenant, or was no event of a job. The operator reads them from the feed, which holds the last seven days,
 * with the credentials of deployment.
 */
import { existsSync } from 'node:fs';
import { decodeEntry } from '../client/audit-read.ts';
import { deadLetterIn } from '../client/dead-letters.ts';
import type { DeadLetter } from '../client/index.ts';
import { userCredentials } from '../platform/access-paths.ts';
import { UsageError } from '../platform/errors.ts';
import { Bus } from '../platform/nats/bus.ts';
import { inboxPrefix } from '../platform/nats-permissions.ts';
import { subjects } from '../platform/topology.ts';
import type { CliConfig } from './config.ts';

/** Numbered by their place in the whole ledger, oldest first. Throws UsageError without the credentials. */
export async function deadLettersOfAll(
  config: Pick<CliConfig, 'natsUrl' | 'stateDir'>,
): Promise<DeadLetter[]> {
  const credentials = userCredentials(config.stateDir, 'deployment');
  if (!existsSync(credentials))
    throw new UsageError(
      `dead letters of all tenants are the operator's: there are no credentials of deployment in ${credentials}`,
    );
  const bus = await Bus.connect({
    ...{ url: config.natsUrl, name: 'deployment', inboxPrefix: inboxPrefix('deployment') },
    ...{ credentials, timeoutMs: 2000 },
  });
  try {
    return await readFeed(bus);
  } finally {
    await bus.close();
  }
}

async function readFeed(bus: Bus): Promise<DeadLetter[]> {
  const letters: DeadLetter[] = [];
  const filter = subjects.audit({ tenant: '*', jobId: '*' }, 'dead-lettered');
  for (let next = 1; ; ) {
    const message = await bus.nextMessage('AUDIT', next, filter);
    if (message === null) return letters;
    next = message.sequence + 1;
    const entry = decodeEntry(message.data);
    const letter = deadLetterIn(entry);
    if (letter !== null) letters.push({ ...letter, sequence: entry.record.sequence });
  }
}
