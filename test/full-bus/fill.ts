/** Fills a small bus while the audit service stands still, then lets it go on. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { uuidV7 } from '../../services/client/index.ts';
import { OperationalError } from '../../services/platform/errors.ts';
import { streamOfBucket, terminalKinds } from '../../services/platform/topology.ts';
import type { TestSystem } from '../with-system.ts';
import { connectAsDeployment } from '../with-system.ts';

export interface Filled {
  readonly accepted: readonly string[];
  /** Error codes of those that were refused, and how often each came. */
  readonly refused: ReadonlyMap<string, number>;
  /** How full the streams of services were at the most, of 1. */
  readonly fullest: number;
}

/** Submits that many jobs, one after the other, with the audit service stopped. */
export async function fill(system: TestSystem, jobs: number): Promise<Filled> {
  const plugin = { name: 'small.sh', bytes: Buffer.from('echo done\n') };
  const envelope = system.sign(plugin.name, plugin.bytes);
  const accepted: string[] = [];
  const refused = new Map<string, number>();
  const level = watchLevel(system);
  for (let i = 0; i < jobs; i++) {
    const jobId = uuidV7();
    try {
      await system.client.submit({ plugin, envelope, jobId, limits: { memoryBytes: 32 << 20 } });
      accepted.push(jobId);
    } catch (error) {
      if (!(error instanceof OperationalError)) throw error;
      refused.set(error.code, (refused.get(error.code) ?? 0) + 1);
    }
  }
  // What has been let in goes as far as it can without audit.
  await delay(2_000);
  return { accepted, refused, fullest: await level.stop() };
}

/** Those jobs of `jobIds` that have no end in the ledger yet. */
export async function openJobs(system: TestSystem, jobIds: readonly string[]): Promise<string[]> {
  const open = new Set(jobIds);
  for await (const { record } of system.client.records({ follow: false }))
    if (terminalKinds.some((kind) => kind === record.kind)) open.delete(record.jobId);
  return [...open];
}

/** Lines of the services' logs that tell of a publish that the bus refused. */
export async function refusedPublishes(stateDir: string): Promise<string[]> {
  const folder = join(stateDir, 'logs');
  const texts = await Promise.all(
    (await readdir(folder)).map((name) => readFile(join(folder, name), 'utf8')),
  );
  return texts
    .flatMap((text) => text.split('\n'))
    .filter((line) => /BUS_FULL|maximum bytes exceeded/.test(line));
}

function watchLevel(system: TestSystem): { stop: () => Promise<number> } {
  const ended = new AbortController();
  const watch = async () => {
    const bus = await connectAsDeployment(system);
    let fullest = 0;
    while (!ended.signal.aborted) {
      for (const stream of ['JOBS', streamOfBucket('jobs')]) {
        const { bytes, maxBytes } = await bus.streamState(stream);
        fullest = Math.max(fullest, bytes / maxBytes);
      }
      await delay(200, undefined, { signal: ended.signal }).catch(() => undefined);
    }
    await bus.close();
    return fullest;
  };
  const watching = watch();
  return {
    stop: () => {
      ended.abort();
      return watching;
    },
  };
}
