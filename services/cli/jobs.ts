/** `sandbus submit | wait | logs | artifacts | cancel | ps | show`. */
import type { Command } from 'commander';
import type { ArtifactsOptions } from './artifacts.ts';
import { define, exitsWith, once } from './command.ts';
import type { JobOptions } from './job-options.ts';
import { withJobOptions } from './job-options.ts';
import { parseCount } from './quantities.ts';
import type { ShowOptions } from './show.ts';

interface Json {
  readonly json?: true;
}

export function registerJobs(program: Command): void {
  registerSubmit(program);
  registerWait(program);
  registerLogs(program);
  registerArtifacts(program);
  registerCancel(program);
  registerPs(program);
  registerShow(program);
}

/** The actions are loaded when one is taken: `--help` needs neither NATS nor Avro. */
const actions = () => import('./job-actions.ts');

function registerSubmit(program: Command): void {
  const command = define(program, {
    usage: 'submit <plugin> [args...]',
    summary: 'submit a job and print its id',
    description:
      'Returns as soon as the bus has the job for good. `sandbus wait` and `sandbus logs` tell the rest.',
    examples: [
      'sandbus submit hello.py -- one two',
      'job=$(sandbus submit train.py --wall 2h); sandbus wait $job',
    ],
    exits: ['unavailable', 'busFull'],
  });
  withJobOptions(command)
    .option('--stdin <file>', 'standard input of the plugin; - takes ours (default: empty)')
    .action(
      exitsWith(async (plugin: string, args: readonly string[], options: JobOptions & { stdin?: string }) =>
        (await actions()).submit(plugin, args, options),
      ),
    );
}

function registerWait(program: Command): void {
  define(program, {
    usage: 'wait <job>',
    summary: 'wait until a job has ended, and exit as it did',
    examples: ['sandbus wait 0198c2f0-…'],
    exits: [
      'notFound',
      'unavailable',
      'timeLimit',
      'notRun',
      'rejected',
      'cancelled',
      'memoryLimit',
      'cpuLimit',
      'outputLimit',
      'syscallDenied',
    ],
  }).action(exitsWith(async (job: string, options: Json) => (await actions()).wait(job, options)));
}

function registerLogs(program: Command): void {
  define(program, {
    usage: 'logs <job>',
    summary: "a job's output, byte for byte",
    description:
      'Its standard output goes to ours, its standard error to ours. With --json: one object for each piece, bytes as ' +
      'Base64. Output is kept for a day; of what is gone, a sentence on standard error says how much.',
    examples: ['sandbus logs 0198c2f0-…', 'sandbus logs -f 0198c2f0-…'],
    exits: ['notFound', 'unavailable', 'failed'],
  })
    .option('-f, --follow', 'go on until the job ends')
    .action(
      exitsWith(async (job: string, options: Json & { follow?: true }) =>
        (await actions()).logs(job, options),
      ),
    );
}

function registerArtifacts(program: Command): void {
  define(program, {
    usage: 'artifacts <job>',
    summary: 'the files that a job left in /job/out: lists them, or fetches them',
    description:
      'With --out they are fetched into a folder, under their names, each checked against its SHA-256. Nothing that is ' +
      'there already is overwritten; what is there with the same bytes is not fetched again. They are kept for a week; ' +
      'what is gone, or was not kept, is said on standard error.',
    examples: ['sandbus artifacts 0198c2f0-…', 'sandbus artifacts 0198c2f0-… --out results'],
    exits: ['notFound', 'unavailable', 'failed'],
  })
    .option('--out <folder>', 'fetch them into this folder, which is made where there is none')
    .action(
      exitsWith(async (job: string, options: ArtifactsOptions) =>
        (await import('./artifacts.ts')).artifacts(job, options),
      ),
    );
}

function registerCancel(program: Command): void {
  define(program, {
    usage: 'cancel <job>',
    summary: 'ask for a job to end',
    description: 'A queued job does not start any more; a running one is killed with all its processes.',
    examples: ["sandbus cancel 0198c2f0-… --reason 'wrong input'"],
    exits: ['notFound', 'unavailable', 'busFull'],
  })
    .option('--reason <text>', 'recorded in the ledger', 'cancelled at the command line')
    .action(
      exitsWith(async (job: string, options: Json & { reason: string }) =>
        (await actions()).cancel(job, options),
      ),
    );
}

function registerPs(program: Command): void {
  define(program, {
    usage: 'ps',
    summary: 'jobs that have not ended, newest first',
    examples: ['sandbus ps', 'sandbus ps --all --limit 100'],
    exits: ['unavailable'],
  })
    .option('-a, --all', 'those that have ended, too')
    .option(
      '--limit <number>',
      'look at so many of the newest jobs (default: 50)',
      once('--limit', parseCount),
    )
    .action(
      exitsWith(async (options: Json & { all?: true; limit?: number }) => (await actions()).ps(options)),
    );
}

function registerShow(program: Command): void {
  define(program, {
    usage: 'show <job>',
    summary:
      'the whole record of a job: who signed it, each step, what it used and did, where it stands in the ledger',
    examples: [
      'sandbus show 0198c2f0-…',
      'sandbus show 0198c2f0-… --trace',
      'sandbus show 0198c2f0-… --json | jq .result.outcome',
    ],
    exits: ['notFound', 'unavailable'],
  })
    .option('--trace', 'draw its trace as a waterfall instead')
    .action(
      exitsWith(async (job: string, options: ShowOptions) => (await import('./show.ts')).show(job, options)),
    );
}
