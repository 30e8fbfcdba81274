/** Options of a job, the same for `run` and `submit`, and the request that they make. */
import type { Command } from 'commander';
import type { Network, RequestedLimits, SubmitRequest, UploadProgress } from '../client/index.ts';
import { choice, many, once } from './command.ts';
import { parseCount, parseCpus, parseDuration, parseMemory, parsePair, parseSize } from './quantities.ts';

export interface JobOptions {
  readonly envelope?: string;
  readonly memory?: number;
  readonly cpus?: number;
  readonly wall?: number;
  readonly cpuTime?: number;
  readonly processes?: number;
  readonly outputLimit?: number;
  readonly tmpSize?: number;
  readonly gpu?: true;
  readonly network?: Network;
  readonly input?: readonly FileOption[];
  readonly env?: readonly (readonly [string, string])[];
  readonly label?: readonly (readonly [string, string])[];
  readonly maxAttempts?: number;
  readonly startWithin?: number;
  readonly jobId?: string;
  readonly traceparent?: string;
  readonly json?: true;
}

interface FileOption {
  readonly path: string;
  readonly name?: string;
}

export function withJobOptions(command: Command): Command {
  const text = (value: string) => value;
  return command
    .option('--envelope <file>', 'signature of the plugin (default: PLUGIN.dsse.json if it is there)')
    .option('--memory <size>', 'memory of the whole process tree, e.g. 256M', once('--memory', parseMemory))
    .option('--cpus <number>', 'processors, e.g. 0.5', once('--cpus', parseCpus))
    .option('--wall <duration>', 'wall-clock limit, e.g. 10s', once('--wall', parseDuration))
    .option('--cpu-time <duration>', 'CPU time of the whole process tree', once('--cpu-time', parseDuration))
    .option('--processes <number>', 'processes and threads at one time', once('--processes', parseCount))
    .option(
      '--output-limit <size>',
      'kept bytes of each of stdout and stderr',
      once('--output-limit', parseSize),
    )
    .option('--tmp-size <size>', 'size of /tmp, /job and /dev/shm together', once('--tmp-size', parseSize))
    .option('--gpu', 'run where there is a GPU')
    .option('--network <network>', 'none or host', once('--network', choice<Network>(['none', 'host'])))
    .option('--input <file>', 'file for /job, or NAME=FILE; repeatable', many('--input', parseInput))
    .option(
      '--env <pair>',
      'environment variable NAME=VALUE; recorded, so no secrets; repeatable',
      many('--env', parsePair),
    )
    .option('--label <pair>', 'label NAME=VALUE; repeatable', many('--label', parsePair))
    .option(
      '--max-attempts <number>',
      'how often it may be started (default: 1)',
      once('--max-attempts', parseCount),
    )
    .option(
      '--start-within <duration>',
      'must have started by then (default: 1h)',
      once('--start-within', parseDuration),
    )
    .option('--job-id <uuid>', 'UUIDv7 of the job; submitting it twice runs it once', once('--job-id', text))
    .option(
      '--traceparent <context>',
      'W3C trace context that the job belongs to',
      once('--traceparent', text),
    );
}

/** `FILE`, or `NAME=FILE`; NAME may have folders in it. */
export function parseInput(text: string): FileOption {
  if (!text.includes('=')) return { path: text };
  const [name, path] = parsePair(text);
  return { name, path };
}

/** The request for a plugin file. Without an envelope it goes out unsigned: saying no is the verifier's business. */
export async function toRequest(
  plugin: string,
  args: readonly string[],
  options: JobOptions,
): Promise<SubmitRequest> {
  const { readBytes, readIfThere } = await import('./files.ts');
  const envelope =
    options.envelope === undefined
      ? await readIfThere(`${plugin}.dsse.json`, 'envelope')
      : await readBytes(options.envelope, 'envelope');
  return {
    plugin: { path: plugin },
    envelope,
    args,
    env: Object.fromEntries(options.env ?? []),
    inputs: options.input ?? [],
    limits: limitsOf(options),
    requiresGpu: options.gpu ?? false,
    network: options.network ?? 'none',
    maxAttempts: options.maxAttempts ?? 1,
    deadline: options.startWithin === undefined ? undefined : new Date(Date.now() + options.startWithin),
    labels: Object.fromEntries(options.label ?? []),
    jobId: options.jobId,
    traceparent: options.traceparent,
  };
}

function limitsOf(options: JobOptions): Partial<RequestedLimits> {
  return {
    memoryBytes: options.memory ?? null,
    cpuMillis: options.cpus ?? null,
    wallMs: options.wall ?? null,
    cpuTimeMs: options.cpuTime ?? null,
    processes: options.processes ?? null,
    outputBytes: options.outputLimit ?? null,
    tmpBytes: options.tmpSize ?? null,
  };
}

/** `uploading 12 MiB of 40 MiB`. */
export function describeUpload({ sentBytes, totalBytes }: UploadProgress): string {
  return `uploading ${Math.floor((100 * sentBytes) / Math.max(1, totalBytes))} %`;
}
