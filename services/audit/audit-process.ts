/** The audit service as a process of its own, for tests that kill and pause it. */
import { join } from 'node:path';
import { nodeFlags } from '../platform/node-flags.ts';
import type { Child } from '../platform/process.ts';
import { startChild } from '../platform/process.ts';
import type { Fixture } from './fixture.ts';

const program = `
  import { runService } from '${join(import.meta.dirname, '../platform/service.ts')}';
  import { start } from '${join(import.meta.dirname, 'main.ts')}';
  process.exit(await runService('audit', start));
`;

export interface AuditProcess extends Child {
  /** What it has written on standard error so far. */
  said(): string;
}

/** Resolves when it is ready, or stands by. */
export async function startProcess(
  f: Pick<Fixture, 'url' | 'stateDir'>,
  more: Readonly<Record<string, string>> = {},
): Promise<AuditProcess> {
  const env = { SANDBUS_NATS_URL: f.url, SANDBUS_STATE_DIR: f.stateDir, SANDBUS_LOG_LEVEL: 'fatal', ...more };
  const args = [...nodeFlags('audit'), '--input-type=module', '--eval', program];
  const child = await startChild(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  let text = '';
  child.stderr?.on('data', (bytes) => {
    text += bytes;
  });
  for await (const _ready of child.stdout ?? []) break;
  return { ...child, said: () => text };
}
