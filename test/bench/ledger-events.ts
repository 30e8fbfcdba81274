/** Events of about the usual size. */
import { encode } from '../../services/platform/codec.ts';
import type { JobRef } from '../../services/platform/topology.ts';

const limits = {
  ...{ memoryBytes: 256 * 2 ** 20, cpuMillis: 1000, wallMs: 60_000, cpuTimeMs: null, processes: 64 },
  ...{ outputBytes: 2 ** 20, tmpBytes: 2 ** 24 },
};

export const routed = (job: JobRef): Uint8Array =>
  encode('JobRouted', {
    ...{ ...job, routedAt: 1, plugin: { name: 'hello.sh', sha256: 'f'.repeat(64), size: 11 } },
    ...{ envelope: Buffer.alloc(300, 'e'), trustStoreVersion: 1, trustStoreDigest: 'd'.repeat(64) },
    ...{ runtime: 'bash', deviceClass: 'cpu', evidence: [], decidedBy: 'statement' },
    spec: {
      ...{ args: [], env: {}, stdin: null, inputs: [], limits, requiresGpu: false, network: 'none' },
      ...{ maxAttempts: 1, deadline: 1, labels: {} },
    },
  });

export const started = (job: JobRef): Uint8Array =>
  encode('JobStarted', {
    ...{ ...job, startedAt: 1, attempt: 1, executor: 'executor-1', runtime: 'bash', deviceClass: 'cpu' },
    sandbox: {
      ...{ filterDigest: 'f'.repeat(64), namespaces: ['user', 'mount', 'pid', 'net', 'ipc'], cgroup: 'v2' },
      ...{ landlockAbi: 5, uid: null, network: 'none', devices: [] },
    },
    limits,
  });
