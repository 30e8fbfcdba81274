/** `sandbus audit verify`: the whole ledger, or one job's proof. */
import type { Command } from 'commander';
import { define, exitsWith } from './command.ts';

export interface VerifyCliOptions {
  readonly ledger?: string;
  readonly proof?: string;
  readonly logKey?: string;
  readonly checkpoint?: string;
  readonly since?: string;
  readonly signatures?: true;
  readonly serviceKeys?: string;
  readonly jobs?: true;
  readonly json?: true;
}

export const logKeyHelp =
  "the log's public key, one line (default: SANDBUS_LEDGER_VERIFIER_KEY, <state>/ledger.pub)";

export function registerVerify(audit: Command): void {
  define(audit, {
    usage: 'verify',
    summary: 'recompute the whole ledger, or check the proof of one job',
    description:
      'Makes every hash of the ledger again from its records and compares it with what is stored and signed: payloads, ' +
      'leaves, the line of each job, the order of each tenant, the tree, every checkpoint. Reads the database itself, ' +
      'beside a service that runs.\n\n' +
      'Whoever owns both the database and the key of the log could write another history that is whole in itself. A ' +
      'checkpoint that was kept elsewhere (`sandbus audit checkpoint --out FILE`) finds that, and a cut-off end: ' +
      '--checkpoint. With --since only what came after it is read.\n\n' +
      'With --proof nothing but the file and the key of the log is needed: no database and no server.',
    examples: [
      'sandbus audit verify --checkpoint kept.checkpoint',
      'sandbus audit verify --ledger postgres://audit@db/sandbus --log-key ledger.pub',
      'sandbus audit verify --proof job.proof.json --log-key ledger.pub',
    ],
    exits: ['failed', 'unavailable'],
  })
    .option('--ledger <file|url>', 'the database (default: SANDBUS_LEDGER_URL, <state>/ledger.db)')
    .option('--proof <file>', 'check this proof of a job, and nothing else')
    .option('--log-key <file>', logKeyHelp)
    .option('--checkpoint <file>', 'a checkpoint that was kept: the ledger must begin as it says')
    .option('--since <file>', 'the same, and verify only what came after it')
    .option('--jobs', 'compare what is told about each job (show, ps) with its records too')
    .option('--signatures', "check the services' signatures of events too")
    .option(
      '--service-keys <file>',
      'their public keys (default: SANDBUS_SERVICE_KEYS, <state>/service-keys.json)',
    )
    .action(
      exitsWith(async (options: VerifyCliOptions) =>
        (await import('./audit-verify-actions.ts')).verify(options),
      ),
    );
}
