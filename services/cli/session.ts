/** A connection for the length of one command. */
import type { SandbusClient } from '../client/index.ts';
import { connect } from '../client/index.ts';
import { OperationalError, UsageError } from '../platform/errors.ts';
import { loadCliConfig } from './config.ts';
import { say } from './output.ts';

/** As SANDBUS_TENANT, or as the tenant that is given. Throws UsageError where the credentials do not let that tenant in. */
export async function withClient<T>(
  work: (client: SandbusClient) => Promise<T>,
  as: { readonly tenant?: string | undefined } = {},
): Promise<T> {
  const { natsUrl: url, credentials, tenant } = loadCliConfig(as.tenant);
  const client = await connect({ url, credentials, tenant, timeoutMs: 2000, onWaiting: sayWhy });
  try {
    if (as.tenant !== undefined) await mayRead(client, credentials);
    return await work(client);
  } finally {
    await client.close().catch(() => undefined);
  }
}

/** Nobody should sit before a silent terminal. */
function sayWhy(reason: string | null): void {
  say(
    `sandbus: waits for the audit service${reason === null ? ', which does not answer yet' : `: ${reason}`}`,
  );
}

/** One look, so that credentials of somebody else are said at once and not taken for a service that is away. */
async function mayRead(client: SandbusClient, credentials: string | null): Promise<void> {
  try {
    await client.jobs({ limit: 1 });
  } catch (error) {
    if (!(error instanceof OperationalError) || error.code === 'NO_SERVICE') throw error;
    const whose = credentials === null ? 'there are no credentials for it' : `${credentials} is not its file`;
    throw new UsageError(
      `cannot read as tenant ${client.tenant}: ${whose}, or the audit service is away (${error.message}). ` +
        '`sandbus tenant list` names the tenants of this machine; SANDBUS_NATS_CREDS names another file',
    );
  }
}
