/** Makes the topology, and makes again what somebody has deleted: here, `sandbus up` is the deployment. */
import { setTimeout as delay } from 'node:timers/promises';
import { userCredentials } from '../platform/access-paths.ts';
import { OperationalError, UsageError } from '../platform/errors.ts';
import { Bus } from '../platform/nats/bus.ts';
import { inboxPrefix } from '../platform/nats-permissions.ts';
import { wholeTopology } from '../platform/topology.ts';
import type { ServerWatch } from './server-watch.ts';

export interface TopologyKeeper {
  stop(): Promise<void>;
}

const lookMs = 5_000;
/** For a server to be able to make streams. */
const formMs = 20_000;

export async function keepTopology(
  url: string,
  options: {
    readonly stateDir: string;
    readonly replicas?: number;
    readonly sizeFactor?: number;
    readonly onEvent?: (text: string) => void;
    /** Looks after the server itself, when it is the only one. */
    readonly watch?: ServerWatch | null;
  },
): Promise<TopologyKeeper> {
  const bus = await Bus.connect({
    ...{ url, name: 'deployment', inboxPrefix: inboxPrefix('deployment') },
    credentials: userCredentials(options.stateDir, 'deployment'),
  });
  const make = () =>
    bus.ensureTopology({ replicas: options.replicas ?? 1, sizeFactor: options.sizeFactor ?? 1 });
  try {
    await insist(make);
  } catch (error) {
    // An open connection would keep the whole process from ending.
    await bus.close().catch(() => undefined);
    throw error;
  }
  const stopping = new AbortController();
  const look = async () => {
    const missing = await bus.missing(wholeTopology());
    options.watch?.answered();
    if (missing.length === 0) return;
    options.onEvent?.(`${missing.join('\n')}\nmaking it again`);
    await make();
  };
  const keep = async () => {
    while (!stopping.signal.aborted) {
      await delay(lookMs, undefined, { signal: stopping.signal }).catch(() => undefined);
      if (!stopping.signal.aborted) await look().catch(sayUnlessOperational);
    }
  };
  const sayUnlessOperational = (error: unknown) => {
    // The server is away or starts again: the next look comes soon.
    if (!(error instanceof OperationalError)) options.onEvent?.(`topology: ${String(error)}`);
  };
  const keeping = keep();
  const watching = options.watch?.keepLooking(stopping.signal);
  return {
    stop: async () => {
      stopping.abort();
      await bus.close().catch(() => undefined);
      await Promise.all([keeping, watching]);
    },
  };
}

/** A cluster that has just started finds its leaders first; a single server is there at once. */
async function insist(make: () => Promise<void>): Promise<void> {
  const giveUpAt = performance.now() + formMs;
  for (;;) {
    try {
      return await make();
    } catch (error) {
      if (error instanceof UsageError || performance.now() > giveUpAt) throw error;
      await delay(500);
    }
  }
}
