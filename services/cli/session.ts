/** A connection for the length of one command. */
import type { SandbusClient } from '../client/index.ts';
import { connect } from '../client/index.ts';
import { loadCliConfig } from './config.ts';

export async function withClient<T>(work: (client: SandbusClient) => Promise<T>): Promise<T> {
  const { natsUrl: url, credentials, tenant } = loadCliConfig();
  const client = await connect({ url, credentials, tenant, timeoutMs: 2000 });
  try {
    return await work(client);
  } finally {
    await client.close().catch(() => undefined);
  }
}
