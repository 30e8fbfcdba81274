/** What an executor can be told. */
import { availableParallelism, totalmem } from 'node:os';
import { z } from 'zod';
import { commonShape, installation, loadConfig, wholeNumber } from '../platform/config.ts';
import type { TrustFiles } from '../trust-store/config.ts';
import { trustFilesOf, trustShape } from '../trust-store/config.ts';

const path = z.string().min(1);

const shape = {
  ...commonShape,
  ...trustShape,
  SANDBUS_LAUNCHER: path.default(installation.launcher),
  SANDBUS_SLOTS: wholeNumber(1).nullable().default(null),
  SANDBUS_MEMORY_BUDGET: wholeNumber(1).nullable().default(null),
  SANDBUS_EXECUTOR_ID: z
    .string()
    .regex(/^[A-Za-z0-9_-]{1,100}$/, 'must be 1 to 100 of A-Z, a-z, 0-9, _ and -')
    .nullable()
    .default(null),
  SANDBUS_LEASE_MS: wholeNumber(6000).default(15_000),
  SANDBUS_GRACE_MS: wholeNumber(0).default(10_000),
  SANDBUS_ALLOW_HOST_NETWORK: z.enum(['0', '1']).default('0'),
  SANDBUS_PYTHON: path.nullable().default(null),
  SANDBUS_RUBY: path.nullable().default(null),
  SANDBUS_BASH: path.nullable().default(null),
  SANDBUS_NODE: path.nullable().default(null),
};

export interface ExecutorConfig {
  readonly id: string;
  readonly hostname: string;
  readonly stateDir: string;
  readonly files: TrustFiles;
  readonly launcher: string;
  readonly slots: number;
  readonly memoryBudgetBytes: number;
  readonly leaseMs: number;
  readonly graceMs: number;
  readonly allowHostNetwork: boolean;
  /** Interpreters that the operator chose; null looks in the usual places. */
  readonly interpreters: Readonly<Record<'python' | 'ruby' | 'bash' | 'node', string | null>>;
}

export function loadExecutorConfig(): ExecutorConfig {
  const given = loadConfig(shape);
  const stateDir = given.SANDBUS_STATE_DIR;
  return {
    id: given.SANDBUS_EXECUTOR_ID ?? defaultId(),
    hostname: installation.hostname,
    stateDir,
    files: trustFilesOf(given),
    launcher: given.SANDBUS_LAUNCHER,
    slots: given.SANDBUS_SLOTS ?? availableParallelism(),
    memoryBudgetBytes: given.SANDBUS_MEMORY_BUDGET ?? Math.floor((machineMemoryBytes() * 3) / 4),
    leaseMs: given.SANDBUS_LEASE_MS,
    graceMs: given.SANDBUS_GRACE_MS,
    allowHostNetwork: given.SANDBUS_ALLOW_HOST_NETWORK === '1',
    interpreters: {
      python: given.SANDBUS_PYTHON,
      ruby: given.SANDBUS_RUBY,
      bash: given.SANDBUS_BASH,
      node: given.SANDBUS_NODE,
    },
  };
}

/** An id is one token of a subject, so the dots of a host name become dashes. */
function defaultId(): string {
  return `${installation.hostname.replace(/[^A-Za-z0-9_-]/g, '-').slice(0, 80)}-${process.pid}`;
}

/** In a container the memory is that of its cgroup. */
function machineMemoryBytes(): number {
  const constrained = process.constrainedMemory();
  return constrained > 0 ? Math.min(constrained, totalmem()) : totalmem();
}
