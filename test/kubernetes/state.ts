/** A state folder as an operator makes it, and what deploy/kubernetes/secrets makes of it. */
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { installation } from '../../services/platform/config.ts';
import { runChild } from '../../services/platform/process.ts';
import { parseManifests } from './rendered.ts';

/** False where the script can run, else why not: it makes a certificate. */
export const withoutSecrets = existsSync('/usr/bin/openssl')
  ? false
  : 'there is no openssl (Debian: openssl)';

export interface State {
  readonly folder: string;
  readonly rootKey: string;
  /** Throws where the command fails. */
  sandbus(...words: string[]): Promise<string>;
  /** Runs the script, whatever comes of it. */
  secrets(): Promise<{ code: number | null; stdout: string; stderr: string }>;
  remove(): Promise<void>;
}

/** With a tenant, a token and a trust store that trusts nobody. The root key lies in the folder, as `trust init` leaves it. */
export async function makeState(): Promise<State> {
  const parent = await mkdtemp(join(tmpdir(), 'sandbus-kubernetes-'));
  const folder = join(parent, 'state');
  await mkdir(folder);
  const environment = { PATH: '/usr/bin:/bin', HOME: parent, SANDBUS_STATE_DIR: folder };
  const run = async (script: string, words: readonly string[]) => {
    const { code, stdout, stderr } = await runChild(
      '/bin/sh',
      [join(installation.root, script), ...words],
      environment,
    );
    return { code, stdout: stdout.toString(), stderr: stderr.toString() };
  };
  const sandbus = async (...words: string[]) => {
    const { code, stdout, stderr } = await run('services/cli/sandbus', words);
    if (code !== 0) throw new Error(`sandbus ${words.join(' ')}: ${stderr}`);
    return stdout;
  };
  await sandbus('access', 'init');
  await sandbus('tenant', 'add', 'acme');
  await sandbus('trust', 'init');
  await sandbus('query-token', 'add', 'me', '--operator');
  return {
    ...{ folder, sandbus, rootKey: join(folder, 'root.pem') },
    secrets: () => run('deploy/kubernetes/secrets', [folder]),
    remove: () => rm(parent, { recursive: true }),
  };
}

/** Keys and bytes of each Secret and ConfigMap, by `<kind> <namespace>/<name>`. */
export function contentsOf(yaml: string): Map<string, Record<string, Buffer>> {
  return new Map(
    parseManifests(yaml).map(({ kind, metadata, data, binaryData }) => [
      `${kind} ${metadata.namespace}/${metadata.name}`,
      Object.fromEntries(
        Object.entries({ ...data, ...binaryData }).map(([key, text]) => [key, Buffer.from(text, 'base64')]),
      ),
    ]),
  );
}

export const readState = (state: State, file: string): Promise<Buffer> => readFile(join(state.folder, file));
