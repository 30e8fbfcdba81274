/** The whole system for one test file: nats-server, four services, a trusted key, a policy. Leaves nothing behind. */
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { defaultPolicy } from '../services/cli/default-policy.ts';
import type { System, SystemOptions } from '../services/cli/system.ts';
import { startAll } from '../services/cli/system.ts';
import type { JobFinished, JobResult, SandbusClient, SubmitRequest } from '../services/client/index.ts';
import { connect } from '../services/client/index.ts';
import { userCredentials } from '../services/platform/access-paths.ts';
import { Bus } from '../services/platform/nats/bus.ts';
import { inboxPrefix } from '../services/platform/nats-permissions.ts';
import { envelopeFor, expectValue, statementOf, trustStoreOf } from '../services/trust/fixture.ts';
import type { PluginStatement, SigningKey, TrustStoreContent } from '../services/trust/index.ts';
import {
  encodePolicy,
  encodeTrustStore,
  generateKey,
  publicKeyToPem,
  signTrustStore,
} from '../services/trust/index.ts';
import { testedServer } from './with-nats.ts';

const mebibyte = 1024 * 1024;

export interface TestSystem {
  readonly url: string;
  readonly stateDir: string;
  readonly system: System;
  readonly client: SandbusClient;
  readonly key: SigningKey;
  /** Signs the trust store; its public key is pinned. */
  readonly root: SigningKey;
  /** The trust store's content as it was published last. */
  readonly trust: TrustStoreContent;
  /** Signs content by the root and puts it where the services read it, as a whole. */
  publishTrust(content: TrustStoreContent, by?: SigningKey): Promise<void>;
  /** An envelope over `bytes` under `name`, by the trusted key unless another is given. */
  sign(name: string, bytes: Uint8Array, changes?: Partial<PluginStatement>, key?: SigningKey): Uint8Array;
  /** Signs and submits, waits for the end. */
  run(name: string, source: string | Uint8Array, request?: Partial<SubmitRequest>): Promise<JobResult>;
  stop(): Promise<void>;
}

export async function startTestSystem(
  environment: Record<string, string> = {},
  options: Partial<SystemOptions> = {},
  prepare: (stateDir: string) => void = () => undefined,
): Promise<TestSystem> {
  const stateDir = await mkdtemp(join(tmpdir(), 'sandbus-test-'));
  prepare(stateDir);
  const key = generateKey();
  await mkdir(stateDir, { recursive: true });
  const root = generateKey();
  let trust = trustStoreOf(key);
  const trustFile = join(stateDir, 'trust.json');
  const publishTrust: TestSystem['publishTrust'] = async (content, by = root) => {
    await writeFile(`${trustFile}.new`, signTrustStore(expectValue(encodeTrustStore(content)), by));
    await rename(`${trustFile}.new`, trustFile);
    trust = content;
  };
  await publishTrust(trust);
  await writeFile(join(stateDir, 'root.pub'), publicKeyToPem(root.publicKey));
  await writeFile(join(stateDir, 'policy.json'), expectValue(encodePolicy(defaultPolicy)));
  const system = await startAll({
    ...{ stateDir, port: 0, logs: 'files', sizeFactor: 0.2, environment, tenants: ['acme'] },
    natsProgram: testedServer().program,
    ...options,
  });
  const client = await connect({
    url: system.url,
    tenant: 'acme',
    credentials: system.credentialsOf('acme'),
  });
  const sign: TestSystem['sign'] = (name, bytes, changes = {}, by = key) =>
    envelopeFor({ ...statementOf(name, sha256(bytes), most), ...changes }, [by]);
  return {
    url: system.url,
    stateDir,
    system,
    client,
    key,
    root,
    get trust() {
      return trust;
    },
    publishTrust,
    sign,
    run: async (name, source, request = {}) => {
      const bytes = Buffer.from(source);
      const { jobId } = await client.submit({
        plugin: { name, bytes },
        envelope: sign(name, bytes),
        ...request,
      });
      return client.wait(jobId);
    },
    stop: async () => {
      await client.close();
      await system.stop();
      await rm(stateDir, { recursive: true, force: true });
    },
  };
}

/** As deployment: sees every stream. */
export function connectAsDeployment({ url, stateDir }: TestSystem): Promise<Bus> {
  return Bus.connect({
    url,
    name: 'deployment',
    credentials: userCredentials(stateDir, 'deployment'),
    inboxPrefix: inboxPrefix('deployment'),
  });
}

/** The result as a finished job; fails with what it is instead. */
export function finished(result: JobResult): JobFinished {
  if (result.kind !== 'finished') throw new Error(`not finished: ${JSON.stringify(result)}`);
  return result.event;
}

export const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');
export const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString('utf8');

/** Processes whose command line or parent chain belongs to `needle`, for tests that must leave none. */
export async function processesWith(needle: string): Promise<string[]> {
  const found: string[] = [];
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    if (command.includes(needle)) found.push(`${pid} ${command.replaceAll('\0', ' ')}`);
  }
  return found;
}

const most = {
  network: 'none',
  limits: { memoryBytes: 512 * mebibyte, cpuMillis: 2000, wallMs: 120_000, processes: 256 },
} as const;
