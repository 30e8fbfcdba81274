/** A real nats-server for one test file, with the whole topology; gone with its files when the tests end. */
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { everyService } from '../services/platform/fixture.ts';
import { Bus } from '../services/platform/nats/bus.ts';
import type { NatsServer } from '../services/platform/nats-server.ts';
import { startNatsServer } from '../services/platform/nats-server.ts';

export interface TestNats {
  readonly url: string;
  readonly server: NatsServer;
  readonly bus: Bus;
  readonly folder: string;
  stop(): Promise<void>;
}

export async function startTestNats(options: { sizeFactor?: number } = {}): Promise<TestNats> {
  const folder = await mkdtemp(join(tmpdir(), 'sandbus-test-'));
  const identity = await everyService(folder);
  const server = await startNatsServer({ storeDir: join(folder, 'nats'), ...testedServer() });
  const bus = await Bus.connect({ url: server.url, name: 'test', credentials: null, identity });
  const stop = async () => {
    await bus.close();
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  };
  try {
    await bus.ensureTopology({ replicas: 1, sizeFactor: options.sizeFactor ?? 0.1 });
  } catch (error) {
    await stop();
    throw error;
  }
  return { url: server.url, server, bus, folder, stop };
}

/** Resolves when `check` is true; fails after `limitMs` with `what`. For things that another process does. */
export async function eventually(
  what: string,
  check: () => Promise<boolean> | boolean,
  limitMs = 10_000,
): Promise<void> {
  const giveUpAt = performance.now() + limitMs;
  while (!(await check())) {
    if (performance.now() > giveUpAt) throw new Error(`not within ${limitMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** SIGSTOP, and back when every thread stands still: kill(2) returns before they do, and one may still answer. */
export async function freeze(pid: number): Promise<void> {
  process.kill(pid, 'SIGSTOP');
  await eventually(`process ${pid} stands still`, async () => {
    const threads = await readdir(`/proc/${pid}/task`);
    const states = await Promise.all(
      threads.map((thread) => readFile(`/proc/${pid}/task/${thread}/status`, 'utf8')),
    );
    return states.every((status) => /^State:\tT/m.test(status));
  });
}

/** The nats-server that the tests run on, where another than the installed one is to be tried. */
export function testedServer(): { program?: string } {
  const program = process.env.SANDBUS_NATS_SERVER;
  return program === undefined || program === '' ? {} : { program };
}
