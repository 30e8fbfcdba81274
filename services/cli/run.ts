/** `sandbus run`: behaves like the program itself, only that it runs in the sandbox. */
import type { Command } from 'commander';
import { define, exitsWith } from './command.ts';
import type { JobOptions } from './job-options.ts';
import { withJobOptions } from './job-options.ts';

export function registerRun(program: Command): void {
  const command = define(program, {
    usage: 'run <plugin> [args...]',
    summary: 'run a plugin as if it were a program here',
    description:
      'Submits a job and behaves like the program itself: standard input goes in (to its end, before the job starts), ' +
      'standard output and error come out byte for byte, the exit code is its own, 128 + its signal, or one of those ' +
      'below. Ctrl-C cancels the job.',
    examples: [
      'sandbus run hello.py -- one two',
      'sandbus run --memory 1G --wall 2m --input data.csv train.py -- --epochs 3 < notes.txt',
    ],
    wrongUse: 'notRun',
    exits: [
      'timeLimit',
      'rejected',
      'cancelled',
      'memoryLimit',
      'brokenPipe',
      'cpuLimit',
      'outputLimit',
      'syscallDenied',
      'busFull',
    ],
  });
  withJobOptions(command)
    .option('-n, --no-stdin', 'give the plugin an empty standard input')
    .action(exitsWith(run));
}

async function run(
  plugin: string,
  args: readonly string[],
  options: JobOptions & { stdin: boolean },
): Promise<number> {
  const { toRequest } = await import('./job-options.ts');
  const { runJob } = await import('./running.ts');
  const { withClient } = await import('./session.ts');
  // At a terminal nobody types input for a job ahead of its start; a pipe or a file is meant for it.
  const stdin = options.stdin && !process.stdin.isTTY ? process.stdin : null;
  const request = { ...(await toRequest(plugin, args, options)), stdin };
  return withClient((client) => runJob(client, request, options.json === true));
}
