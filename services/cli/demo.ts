/** `sandbus demo`: the whole system at work on this machine, and gone again. */
import type { Command } from 'commander';
import { define, exitsWith } from './command.ts';

export function registerDemo(program: Command): void {
  define(program, {
    usage: 'demo',
    summary: 'run a signed plugin in every language, and four that must fail',
    description:
      'Makes keys, a trust store and a policy in a temporary folder, starts an embedded NATS server and the four ' +
      'services, signs and runs one plugin for each language and four that must fail, shows the results, the path ' +
      'and the proof of one job, verifies the ledger, and removes everything again. With --json: one object for each job, one a line.',
    examples: ['sandbus demo', "sandbus demo --json | jq -r '[.plugin, .outcome] | @tsv'"],
    exits: ['failed', 'cancelled'],
  })
    .option('--keep', 'keep the temporary folder: ledger, logs, keys')
    .action(
      exitsWith(async (options: { json?: true; keep?: true }) => {
        const { runDemo } = await import('./demo/demo.ts');
        return runDemo({ json: options.json === true, keep: options.keep === true });
      }),
    );
}
