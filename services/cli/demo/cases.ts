/** The jobs of the demo, as data: what is submitted, and what must come of it. */
import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import type { BuiltPlugin, ReadyPlugin } from '../../../test/plugins/build.ts';
import type { RequestedLimits } from '../../client/index.ts';
import type { Runtime } from '../../trust/index.ts';

export interface Expectation {
  readonly outcome: string;
  /** Reason code of a rejection. */
  readonly reason?: string;
  readonly exitCode?: number;
  /** What standard output begins with. */
  readonly says?: string;
  /** A system call that must have been refused. */
  readonly denies?: string;
}

export interface DemoCase {
  /** File name, as signed and as submitted. */
  readonly plugin: string;
  readonly runtime: Runtime;
  readonly language: string;
  readonly bytes: Uint8Array;
  /** Tampered: the file that is submitted has another byte than the one that was signed. */
  readonly signature: 'valid' | 'none' | 'tampered';
  readonly args: readonly string[];
  readonly limits: Partial<RequestedLimits>;
  readonly expect: Expectation;
}

const mebibyte = 1024 * 1024;

/** What `refused-call.sh` asks for, a namespace of its own, is what the sandbox itself is made of. */
const refusedCall = `#!/bin/bash
# Asks for a network namespace of its own, which the sandbox refuses.
exec unshare --net true
`;

export async function makeCases(built: readonly BuiltPlugin[]): Promise<DemoCase[]> {
  const ready = built.filter((plugin): plugin is ReadyPlugin => 'file' in plugin);
  const hellos = ready.filter(({ kind }) => kind === 'hello');
  const named = (name: string) => {
    const plugin = ready.find((candidate) => candidate.name === name);
    if (plugin === undefined) throw new Error(`no plugin is called ${name}`);
    return readFile(plugin.file);
  };
  const canary = await named('canary.sh');
  return [
    ...(await Promise.all(hellos.map(helloCase))),
    bad('unsigned.sh', canary, { signature: 'none', expect: { outcome: 'rejected', reason: 'UNSIGNED' } }),
    bad('tampered.sh', canary, {
      signature: 'tampered',
      expect: { outcome: 'rejected', reason: 'DIGEST_MISMATCH' },
    }),
    bad('refused-call.sh', Buffer.from(refusedCall), {
      expect: { outcome: 'exited', exitCode: 1, denies: 'unshare' },
    }),
    bad('memory-hog.py', await named('memory-hog.py'), {
      limits: { memoryBytes: 64 * mebibyte },
      expect: { outcome: 'memory-exceeded' },
    }),
  ];
}

async function helloCase(plugin: ReadyPlugin): Promise<DemoCase> {
  const { language, runtime, file } = plugin;
  const expect = { outcome: 'exited', exitCode: 0, says: `hello from ${language}` };
  return {
    plugin: basename(file),
    runtime,
    language,
    bytes: await readFile(file),
    signature: 'valid',
    args: ['one', 'two words'],
    limits: {},
    expect,
  };
}

/** One that must fail. */
function bad(
  plugin: string,
  bytes: Uint8Array,
  differs: Pick<DemoCase, 'expect'> & Partial<Pick<DemoCase, 'signature' | 'limits'>>,
): DemoCase {
  const python = plugin.endsWith('.py');
  const kind = python
    ? ({ runtime: 'python', language: 'Python' } as const)
    : ({ runtime: 'bash', language: 'Bash' } as const);
  return { plugin, ...kind, bytes, signature: 'valid', args: [], limits: {}, ...differs };
}
