/** `sandbus audit tail | list | show | verify | prove | checkpoint`. */
import type { Command } from 'commander';
import { registerCheckpoint, registerProve } from './audit-prove.ts';
import { registerVerify } from './audit-verify.ts';
import { define, exitsWith, once } from './command.ts';
import { parseCount, parseSequence } from './quantities.ts';

export interface AuditOptions {
  readonly job?: string;
  readonly after?: number;
  readonly limit?: number;
  readonly json?: true;
}

const actions = () => import('./audit-actions.ts');

export function registerAudit(program: Command): void {
  const audit = program
    .command('audit')
    .summary('the ledger: every event of every job, in order')
    .description("Reads the tenant's records of the append-only ledger.");
  registerTail(audit);
  registerList(audit);
  registerShow(audit);
  registerVerify(audit);
  registerProve(audit);
  registerCheckpoint(audit);
}

function registerTail(audit: Command): void {
  define(audit, {
    usage: 'tail',
    summary: 'records as they are committed, until Ctrl-C',
    examples: ['sandbus audit tail', 'sandbus audit tail --after 1200 --json'],
    exits: ['unavailable'],
  })
    .option('--job <job>', 'only those of this job')
    .option(
      '--after <sequence>',
      'begin after this one; -1 is from the beginning (default: now)',
      once('--after', parseSequence),
    )
    .action(exitsWith(async (options: AuditOptions) => (await actions()).tail(options)));
}

function registerList(audit: Command): void {
  define(audit, {
    usage: 'list',
    summary: 'records that are there',
    examples: ['sandbus audit list', 'sandbus audit list --job 0198c2f0-…'],
    exits: ['unavailable'],
  })
    .option('--job <job>', 'only those of this job')
    .option('--after <sequence>', 'begin after this one (default: -1)', once('--after', parseSequence))
    .option('--limit <number>', 'at most so many (default: all)', once('--limit', parseCount))
    .action(exitsWith(async (options: AuditOptions) => (await actions()).list(options)));
}

function registerShow(audit: Command): void {
  define(audit, {
    usage: 'show <sequence>',
    summary: 'one record with its event',
    examples: ['sandbus audit show 1200'],
    exits: ['notFound', 'unavailable'],
  }).action(
    exitsWith(async (sequence: string, options: AuditOptions) =>
      (await actions()).show(parseSequence(sequence), options),
    ),
  );
}
