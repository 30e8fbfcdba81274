/** `sandbus audit tail | list | show | verify | prove | checkpoint | consistency | export | syscalls | erase`. */
import type { Command } from 'commander';
import { registerCheckpoint, registerConsistency, registerProve } from './audit-prove.ts';
import { registerVerify } from './audit-verify.ts';
import { choice, define, exitsWith, once } from './command.ts';
import { parseAfter, parseCount, parsePast, parseRecordNumber } from './quantities.ts';

export interface AuditOptions {
  readonly job?: string;
  readonly tenant?: string;
  /** Number of a record of the tenant. */
  readonly after?: number;
  readonly since?: Since;
  readonly limit?: number;
  readonly json?: true;
}

/** Where reading begins: with the tenant's record of a number, or with a time, milliseconds since 1970. */
export type Since = { readonly number: number } | { readonly ms: number };

/** The records of the ledger have another numbering, which verify and proofs use: this one is the tenant's own. */
const numbers =
  'Records are named by their number, which the tenant counts from 0. The ledger counts the records of all tenants ' +
  'together: verify and proofs name its ledger sequence, which show has too.';

function parseSince(text: string): Since {
  return /^\d+$/.test(text) ? { number: parseRecordNumber(text) } : { ms: parsePast(text, Date.now()) };
}

/** What tail, list and export have in common. */
function withRange(command: Command): Command {
  return command
    .option('--job <job>', 'only those of this job')
    .option(
      '--tenant <tenant>',
      'of this tenant, where its credentials are at hand (default: SANDBUS_TENANT)',
    )
    .option(
      '--since <time>',
      'begin at a time (2h, 2027-01-31, 2027-01-31T12:00:00Z) or with the record of a number',
      once('--since', parseSince),
    );
}

const actions = () => import('./audit-actions.ts');

export function registerAudit(program: Command): void {
  const audit = program
    .command('audit')
    .summary('the ledger: every event of every job, in order')
    .description(`Reads the tenant's records of the append-only ledger. ${numbers}`);
  registerTail(audit);
  registerList(audit);
  registerShow(audit);
  registerVerify(audit);
  registerProve(audit);
  registerCheckpoint(audit);
  registerConsistency(audit);
  registerExport(audit);
  registerSyscalls(audit);
  registerErase(audit);
}

function registerTail(audit: Command): void {
  const command = define(audit, {
    usage: 'tail',
    summary: 'records as they are committed, until Ctrl-C',
    description:
      'Records as they are committed, each once and in order, until Ctrl-C; then a terminal is told with which one to go on.',
    examples: [
      'sandbus audit tail',
      'sandbus audit tail --since 2h --json',
      'sandbus audit tail --after 1200',
    ],
    exits: ['unavailable'],
  });
  withRange(command)
    .option(
      '--after <number>',
      'begin after the record of this number; -1 is from the beginning (default: now)',
      once('--after', parseAfter),
    )
    .action(exitsWith(async (options: AuditOptions) => (await actions()).tail(options)));
}

function registerList(audit: Command): void {
  const command = define(audit, {
    usage: 'list',
    summary: 'records that are there',
    examples: ['sandbus audit list', 'sandbus audit list --since 2h', 'sandbus audit list --job 0198c2f0-…'],
    exits: ['unavailable'],
  });
  withRange(command)
    .option(
      '--after <number>',
      'begin after the record of this number (default: -1)',
      once('--after', parseAfter),
    )
    .option('--limit <count>', 'at most so many (default: all)', once('--limit', parseCount))
    .action(exitsWith(async (options: AuditOptions) => (await actions()).list(options)));
}

function registerShow(audit: Command): void {
  define(audit, {
    usage: 'show <number>',
    summary: 'one record with its event',
    description: `One record of the tenant, by its number, with its event. ${numbers}`,
    examples: ['sandbus audit show 1200'],
    exits: ['notFound', 'unavailable'],
  }).action(
    exitsWith(async (number: string, options: AuditOptions) =>
      (await actions()).show(parseRecordNumber(number), options),
    ),
  );
}

export interface ExportOptions extends AuditOptions {
  readonly format?: 'jsonl' | 'ocsf';
  /** Milliseconds since 1970. */
  readonly until?: number;
  readonly out?: string;
}

function registerExport(audit: Command): void {
  const command = define(audit, {
    usage: 'export',
    summary: 'records for other tools: as JSON lines, or as OCSF Process Activity',
    description:
      'jsonl: every record with its event, one object a line. ocsf: one Process Activity (class 1007, OCSF 1.8.0) for each ' +
      'start and each end of a job, and for each refusal. What is there now is exported, then the command ends.',
    examples: [
      'sandbus audit export > records.jsonl',
      'sandbus audit export --format ocsf --since 2027-01-01 --until 2027-02-01 --out january.jsonl',
    ],
    exits: ['unavailable'],
  });
  withRange(command)
    .option(
      '--format <format>',
      'jsonl or ocsf (default: jsonl)',
      once('--format', choice(['jsonl', 'ocsf'])),
    )
    .option(
      '--until <time>',
      'end before this time, written as that of --since',
      once('--until', (text) => parsePast(text, Date.now())),
    )
    .option('--out <file>', 'write there; it must not exist (default: standard output)')
    .action(
      exitsWith(async (options: ExportOptions) => (await import('./audit-export.ts')).exportRecords(options)),
    );
}

export interface SyscallOptions {
  readonly plugin: string;
  readonly tenant?: string;
  readonly json?: true;
}

function registerSyscalls(audit: Command): void {
  define(audit, {
    usage: 'syscalls',
    summary: 'which of the allowed system calls a plugin used, never used, and was refused',
    description:
      "Sums the exact counts of a plugin's runs that the ledger has, and holds them against the calls that the filter allows: " +
      'the start of a tighter policy. Runs that could not be counted are told.',
    examples: ['sandbus audit syscalls --plugin train.py', 'sandbus audit syscalls --plugin train.py --json'],
    exits: ['notFound', 'unavailable'],
  })
    .requiredOption('--plugin <name>', 'name of the plugin, as signed')
    .option(
      '--tenant <tenant>',
      'of this tenant, where its credentials are at hand (default: SANDBUS_TENANT)',
    )
    .action(
      exitsWith(async (options: SyscallOptions) => (await import('./audit-syscalls.ts')).syscalls(options)),
    );
}

function registerErase(audit: Command): void {
  define(audit, {
    usage: 'erase <job>',
    summary: "erase the payloads of a job's records (operator)",
    description:
      'Erases what the events of a job that has ended say, and their salts. Their leaves stay: every proof and checkpoint stays valid, ' +
      'and shows that, when and by whom something was said. Needs the credentials of deployment. The feed on the bus ' +
      'keeps its copy for up to 7 days, logs for 24 hours.',
    examples: ['sandbus audit erase 0198c2f0-… --tenant acme'],
    exits: ['notFound', 'unavailable'],
  })
    .option('--tenant <tenant>', 'whose job it is (default: SANDBUS_TENANT)')
    .action(
      exitsWith(async (job: string, options: { tenant?: string; json?: true }) =>
        (await import('./audit-erase.ts')).erase(job, options),
      ),
    );
}
