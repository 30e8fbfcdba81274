/** A connection with the credentials of deployment, for the length of one command of an operator. */
import { existsSync } from 'node:fs';
import { userCredentials } from '../platform/access-paths.ts';
import { messageOf, UsageError } from '../platform/errors.ts';
import { Bus } from '../platform/nats/bus.ts';
import { inboxPrefix } from '../platform/nats-permissions.ts';

export interface DeploymentAccess {
  readonly natsUrl: string;
  /** Null for a server without accounts. */
  readonly credentials: string | null;
  /** How long a first connection is tried, milliseconds. */
  readonly timeoutMs?: number;
}

/** Throws UsageError where the credentials are somebody else's, whatever the server says of that. */
export async function asDeployment<T>(
  { natsUrl: url, credentials, timeoutMs }: DeploymentAccess,
  work: (bus: Bus) => Promise<T>,
): Promise<T> {
  const about = { name: 'deployment', inboxPrefix: inboxPrefix('deployment') };
  const bus = await Bus.connect({
    ...{ url, credentials, ...about },
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  });
  try {
    return await work(bus);
  } catch (error) {
    // The server tells a tenant or a service that it may not listen where deployment gets its replies.
    if (!/permissions violation/i.test(messageOf(error))) throw error;
    throw new UsageError(`this takes the credentials of deployment, and ${credentials} has others: ${where}`);
  } finally {
    await bus.close().catch(() => undefined);
  }
}

const where =
  '`sandbus up` and `sandbus access init` make them, access/deployment.nk in their state folder; SANDBUS_NATS_CREDS names the file';

/** Those of this machine. Throws UsageError where there are none; `what` is what they are needed for. */
export function deploymentCredentials(stateDir: string, what: string): string {
  const file = userCredentials(stateDir, 'deployment');
  if (existsSync(file)) return file;
  throw new UsageError(`${what}: there are no credentials of deployment in ${file}; ${where}`);
}
