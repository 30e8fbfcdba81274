/** `sandbus audit prove | checkpoint | consistency`: what a tenant takes home from the ledger. */
import type { Command } from 'commander';
import { logKeyHelp } from './audit-verify.ts';
import { define, exitsWith } from './command.ts';

export interface ProveCliOptions {
  readonly out?: string;
  readonly logKey?: string;
  /** False with `--no-payloads`. */
  readonly payloads: boolean;
  readonly json?: true;
}

export interface CheckpointCliOptions {
  readonly out?: string;
  readonly logKey?: string;
  readonly json?: true;
}

const actions = () => import('./audit-prove-actions.ts');

export function registerProve(audit: Command): void {
  define(audit, {
    usage: 'prove <job>',
    summary: 'write a proof of all that happened to a job, for others to check offline',
    description:
      'Asks the audit service for the records of the job and their places in the tree of a signed checkpoint, checks ' +
      'them, and writes one JSON file. `sandbus audit verify --proof FILE --log-key FILE` checks it anywhere. The file ' +
      "holds the job's arguments, environment and standard input, unless --no-payloads leaves digests of them only.",
    examples: [
      'sandbus audit prove 0198c2f0-… --out job.proof.json',
      'sandbus audit prove 0198c2f0-… --no-payloads',
    ],
    exits: ['failed', 'notFound', 'unavailable'],
  })
    .option('--out <file>', 'write there; it must not exist (default: standard output)')
    .option('--log-key <file>', logKeyHelp)
    .option('--no-payloads', 'leave out the events themselves: their digests stay')
    .action(
      exitsWith(async (job: string, options: ProveCliOptions) => (await actions()).prove(job, options)),
    );
}

export function registerCheckpoint(audit: Command): void {
  define(audit, {
    usage: 'checkpoint',
    summary: 'fetch the newest checkpoint, and check that the log has only grown since the one you keep',
    description:
      'With --out FILE the checkpoint is kept there. When FILE is there already, the log must prove that what it was ' +
      'then is how it is now, with more behind it; then FILE gets the new one. Otherwise FILE stays as it is, and the ' +
      'command fails. Run it now and then, on a machine that the owner of the log does not own.',
    examples: ['sandbus audit checkpoint --out kept.checkpoint --log-key ledger.pub'],
    exits: ['failed', 'unavailable'],
  })
    .option('--out <file>', 'the one that you keep (default: only print the newest)')
    .option('--log-key <file>', logKeyHelp)
    .action(exitsWith(async (options: CheckpointCliOptions) => (await actions()).checkpoint(options)));
}

export function registerConsistency(audit: Command): void {
  define(audit, {
    usage: 'consistency <older> <newer>',
    summary: 'check that the newer of two kept checkpoints goes on from the older',
    description:
      'Both are files with checkpoints, kept by anybody at any time. The log must prove that everything that the older one ' +
      'covered stands unchanged below the newer one; of two that are equal in size, the roots must be equal.',
    examples: ['sandbus audit consistency january.checkpoint june.checkpoint --log-key ledger.pub'],
    exits: ['failed', 'unavailable'],
  })
    .option('--log-key <file>', logKeyHelp)
    .action(
      exitsWith(async (older: string, newer: string, options: CheckpointCliOptions) =>
        (await actions()).consistency(older, newer, options),
      ),
    );
}
