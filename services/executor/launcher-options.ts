/** The words of one job: the options of `launcher run`, which are those of a START frame. Pure. */
import type { JobRouted, Limits, Network } from '../../schemas/generated/events.ts';
import type { Rejection } from '../trust/index.ts';
import type { GpuAccess } from './gpu-devices.ts';
import type { Interpreter } from './interpreters.ts';

/** One job, as the launcher is told it. */
export interface LauncherJob {
  readonly limits: Limits;
  readonly plugin: { readonly path: string; readonly name: string; readonly sha256: string };
  /** Null runs the plugin itself. */
  readonly interpreter: Interpreter | null;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** File of the standard input; null is empty. */
  readonly stdinPath: string | null;
  readonly inputs: readonly { readonly name: string; readonly path: string }[];
  readonly collectFolder: string;
  readonly gpu: GpuAccess | null;
  readonly network: Network;
}

export function launcherArguments(job: LauncherJob): string[] {
  const { limits, plugin, interpreter, gpu } = job;
  const inside = `/plugin/${plugin.name}`;
  return [
    ...limitOptions(limits),
    ...['--plugin', plugin.path, '--plugin-name', plugin.name, '--plugin-sha256', plugin.sha256],
    ...['--stdin', job.stdinPath ?? '/dev/null'],
    ...job.inputs.flatMap(({ name, path }) => ['--input', `${name}=${path}`]),
    ...['--collect', job.collectFolder, '--network', job.network],
    ...(interpreter?.bind == null ? [] : ['--ro-bind', interpreter.bind]),
    ...(gpu?.binds ?? []).flatMap(({ source, target }) => ['--ro-bind', `${source}:${target}`]),
    ...(gpu?.devices ?? []).flatMap(({ path, access }) => ['--device', `${path}:${access}`]),
    ...Object.entries({ ...gpu?.env, ...job.env }).flatMap(([key, value]) => ['--env', `${key}=${value}`]),
    '--',
    ...(interpreter === null ? [inside] : [interpreter.path, inside]),
    ...job.args,
  ];
}

function limitOptions(limits: Limits): string[] {
  const seconds = (ms: number) => (ms / 1000).toFixed(3);
  return [
    ...['--memory', String(limits.memoryBytes), '--cpus', (limits.cpuMillis / 1000).toFixed(3)],
    ...['--pids', String(limits.processes), '--wall', seconds(limits.wallMs)],
    ...(limits.cpuTimeMs === null ? [] : ['--cpu-time', seconds(limits.cpuTimeMs)]),
    ...['--output-limit', String(limits.outputBytes), '--tmp-size', String(limits.tmpBytes)],
  ];
}

/** The variables of a job: few of ours, then the job's own, except that nobody may forge the two that say which job it is. */
export function jobEnvironment(job: JobRouted, limits: Limits, traceparent: string): Record<string, string> {
  // Libraries start one thread for each core of the host, and fail where few processes are allowed.
  const threads = String(Math.max(1, Math.ceil(limits.cpuMillis / 1000)));
  return {
    PATH: '/usr/local/bin:/usr/bin:/bin',
    HOME: '/job',
    LANG: 'C.UTF-8',
    GOMAXPROCS: threads,
    OMP_NUM_THREADS: threads,
    OPENBLAS_NUM_THREADS: threads,
    UV_THREADPOOL_SIZE: threads,
    ...job.spec.env,
    TRACEPARENT: traceparent,
    SANDBUS_JOB_ID: job.jobId,
  };
}

/** The kernel takes no single string above 128 KiB (MAX_ARG_STRLEN), its end included. */
const longestStringBytes = 128 * 1024 - 1;
/** All strings together, well below the quarter of an 8 MiB stack that the kernel allows. */
const allStringsBytes = 1024 * 1024;

/** What no program could be given, said before anything is tried. */
export function refuseStrings(job: JobRouted): Rejection | null {
  const { args, env, inputs } = job.spec;
  const malformed = (detail: string): Rejection => ({ ok: false, reason: 'MALFORMED', detail });
  for (const [key, value] of Object.entries(env))
    if (key === '' || /[=\0]/.test(key) || value.includes('\0'))
      return malformed(
        `variable ${JSON.stringify(key)}: a name is not empty and without "=", neither part has a NUL`,
      );
  const nul = args.findIndex((argument) => argument.includes('\0'));
  if (nul >= 0) return malformed(`argument ${nul} contains a NUL, which no program can be given`);
  const names = inputs.map(({ name }) => name);
  const bad =
    names.find((name) => !isInputName(name)) ?? names.find((name, at) => names.indexOf(name) !== at);
  if (bad !== undefined)
    return malformed(`input ${JSON.stringify(bad)}: a name is relative, once, without "..", "=" and NUL`);
  return refuseLength([...args, ...Object.entries(env).map(([key, value]) => `${key}=${value}`)]);
}

function refuseLength(strings: readonly string[]): Rejection | null {
  const lengths = strings.map((text) => Buffer.byteLength(text));
  const total = lengths.reduce((sum, length) => sum + length + 1 + 8, 0);
  const longest = Math.max(0, ...lengths);
  if (longest <= longestStringBytes && total <= allStringsBytes) return null;
  const detail = `arguments and variables: the longest has ${longest} bytes and all ${total}; a program takes ${longestStringBytes} and ${allStringsBytes}: pass data by standard input or an input file`;
  return { ok: false, reason: 'LIMIT_EXCEEDED', detail };
}

function isInputName(name: string): boolean {
  if (name === '' || /[=\0]/.test(name)) return false;
  return name.split('/').every((part) => part !== '' && part !== '.' && part !== '..' && part.length <= 255);
}
