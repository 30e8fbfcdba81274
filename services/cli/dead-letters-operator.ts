/**
 * Dead letters of all tenants, and those that no tenant may see since they belong to none: what came under a subject
 * without a valid tenant, or was no event of a job. The operator reads them from the feed, which holds the last seven days,
 * with the credentials of deployment.
 */
import { decodeEntry } from '../client/audit-read.ts';
import { deadLetterIn } from '../client/dead-letters.ts';
import type { DeadLetter } from '../client/index.ts';
import type { Bus } from '../platform/nats/bus.ts';
import { subjects } from '../platform/topology.ts';
import { asDeployment, deploymentCredentials } from './as-deployment.ts';
import type { CliConfig } from './config.ts';

/** Numbered by their place in the whole ledger, oldest first. Throws UsageError without the credentials. */
export async function deadLettersOfAll(
  config: Pick<CliConfig, 'natsUrl' | 'stateDir'>,
): Promise<DeadLetter[]> {
  const credentials = deploymentCredentials(
    config.stateDir,
    "dead letters of all tenants are the operator's",
  );
  return asDeployment({ natsUrl: config.natsUrl, credentials, timeoutMs: 2000 }, readFeed);
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
