/** The launcher's result, one JSON object, read strictly: a field that is missing or unknown is a fault. */
import { z } from 'zod';
import { messageOf } from '../platform/errors.ts';

const count = z.number().int().min(0).max(Number.MAX_SAFE_INTEGER);
const ms = z.number().min(0);
const sha256 = z.string().regex(/^[0-9a-f]{64}$/);
const reason = z.string();

const outcomes = [
  'exited',
  'signaled',
  'wall-time-exceeded',
  'cpu-time-exceeded',
  'memory-exceeded',
  'output-exceeded',
  'syscall-denied',
  'cancelled',
  'setup-failed',
] as const;

const output = z.strictObject({ bytes: count, kept: count, sha256, truncated: z.boolean() });

const refusal = z.strictObject({
  syscall: z.string(),
  number: z.number().int(),
  rule: z.string().nullable(),
  answer: z.string(),
  count,
  args: z.array(z.string()),
  /** Null where it was gone before it could be read, and for the unknown numbers that no sample holds. */
  program: z
    .string()
    .nullable()
    .transform((program) => program ?? ''),
});

const unavailable = z.strictObject({ available: z.literal(false), reason });

const execution = z.strictObject({ path: z.string(), interpreter: z.string().nullable(), atMs: ms });

const deviceAccess = z.strictObject({
  device: z.string(),
  type: z.string(),
  major: count,
  minor: count,
  allowed: count,
  denied: count,
});

const resultShape = z.strictObject({
  version: z.literal(1),
  outcome: z.enum(outcomes),
  exitCode: z.number().int().nullable(),
  signal: z.number().int().nullable(),
  error: z
    .strictObject({
      step: z.string(),
      errno: z.string().nullable(),
      message: z.string(),
      mend: z.string(),
    })
    .nullable(),
  usage: z.strictObject({
    wallMs: ms,
    userMs: ms,
    systemMs: ms,
    /** Null where the kernel does not say. */
    peakMemoryBytes: count.nullable(),
    peakProcesses: count.nullable(),
    throttledMs: ms,
  }),
  stdin: z.strictObject({ bytes: count }),
  stdout: output,
  stderr: output,
  oomKills: count,
  oomVictims: z.array(z.strictObject({ program: z.string(), pid: count })).max(16),
  syscalls: z.discriminatedUnion('available', [
    z.strictObject({ available: z.literal(true), total: count, counts: z.record(z.string(), count) }),
    unavailable,
  ]),
  denials: z.array(refusal),
  probes: z.array(refusal),
  executions: z.discriminatedUnion('available', [
    z.strictObject({ available: z.literal(true), dropped: count, entries: z.array(execution) }),
    unavailable,
  ]),
  devices: z.discriminatedUnion('available', [
    z.strictObject({
      available: z.literal(true),
      granted: z.array(z.string()),
      accesses: z.array(deviceAccess),
    }),
    unavailable,
  ]),
  sandbox: z.strictObject({
    namespaces: z.array(z.string()),
    cgroup: z.string(),
    landlockAbi: count,
    uid: count,
    network: z.enum(['none', 'host']),
  }),
  outputs: z.strictObject({
    files: z.array(z.strictObject({ name: z.string().min(1), bytes: count, sha256 })),
    /** What was left out; the last row stands for those that are too many to list. */
    skipped: z.array(z.strictObject({ name: z.string(), reason })),
  }),
  filterDigest: sha256,
  timings: z.record(z.string(), count),
});

export type LauncherResult = Readonly<z.infer<typeof resultShape>>;

export type ParsedResult =
  | { readonly ok: true; readonly result: LauncherResult }
  | { readonly ok: false; readonly fault: string };

export function parseLauncherResult(text: string): ParsedResult {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    return { ok: false, fault: `no JSON: ${messageOf(error)}` };
  }
  const parsed = resultShape.safeParse(json);
  if (parsed.success) return { ok: true, result: parsed.data };
  const faults = parsed.error.issues.slice(0, 5).map((issue) => `${issue.path.join('.')}: ${issue.message}`);
  return { ok: false, fault: faults.join('; ') };
}

const refusalShape = z.object({
  outcome: z.literal('setup-failed'),
  error: z.object({ step: z.string(), message: z.string(), mend: z.string() }),
});

export type Refusal = z.infer<typeof refusalShape>['error'];

/** The short object for a job that never was, or a launcher that cannot serve; null when the text is something else. */
export function parseRefusal(text: string): Refusal | null {
  try {
    return refusalShape.parse(JSON.parse(text)).error;
  } catch {
    return null;
  }
}

/** What such an object says, as a sentence. */
export function describeRefusal(text: string): string {
  const refusal = parseRefusal(text);
  return refusal === null ? text.slice(0, 500) : `${refusal.step}: ${refusal.message} (${refusal.mend})`;
}

const hostShape = z.object({
  version: z.literal(1),
  ok: z.boolean(),
  filterDigest: sha256,
  cgroup: z.string(),
  namespaces: z.array(z.string()).default(['mount', 'pid', 'network', 'ipc', 'uts', 'cgroup']),
  landlockAbi: count.default(0),
  controls: z.array(
    z.object({
      name: z.string(),
      ok: z.boolean(),
      required: z.boolean(),
      detail: z.string().nullable().default(null),
      mend: z.string().nullable().default(null),
    }),
  ),
});

/** What `launcher check-host --json` says. */
export type HostReport = Readonly<z.infer<typeof hostShape>>;
export const parseHostReport = (text: string): HostReport => hostShape.parse(JSON.parse(text));

const syscallsShape = z.object({ digest: sha256, names: z.array(z.string()).min(1) });

/** What `launcher syscalls --json` says. */
export type SyscallList = Readonly<z.infer<typeof syscallsShape>>;
export const parseSyscallList = (text: string): SyscallList => syscallsShape.parse(JSON.parse(text));
