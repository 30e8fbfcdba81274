/** `sandbus dead-letters list | show | replay`. */
import type { Command } from 'commander';
import { define, exitsWith } from './command.ts';
import { parseRecordNumber } from './quantities.ts';

interface Json {
  readonly json?: true;
}

interface Whose extends Json {
  readonly allTenants?: true;
}

const allTenants = [
  '--all-tenants',
  'those of all tenants and of none, of the last seven days; takes the credentials of deployment',
] as const;

const actions = () => import('./dead-letters-actions.ts');

export function registerDeadLetters(program: Command): void {
  const letters = program
    .command('dead-letters')
    .summary('messages that no service could handle: list, show, send again')
    .description(
      'A message that cannot be decoded, has a wrong subject, repeats a job id or failed too often is not lost: it is a ' +
        'record of the ledger, with the reason. Its number among the records of the tenant names it; with --all-tenants, ' +
        'its ledger sequence.',
    );
  define(letters, {
    usage: 'list',
    summary: 'those of the tenant, oldest first',
    examples: ['sandbus dead-letters list', 'sandbus dead-letters list --all-tenants --json'],
    exits: ['unavailable'],
  })
    .option(...allTenants)
    .action(exitsWith(async (options: Whose) => (await actions()).list(options)));
  define(letters, {
    usage: 'show <number>',
    summary: 'one of them: reason, headers, and the bytes as hexadecimal or as the event in them',
    examples: ['sandbus dead-letters show 1200'],
    exits: ['notFound', 'unavailable'],
  })
    .option(...allTenants)
    .action(
      exitsWith(async (number: string, options: Whose) =>
        (await actions()).show(parseRecordNumber(number), options),
      ),
    );
  define(letters, {
    usage: 'replay <number>',
    summary: 'send it again: a submission under a new job id, a cancel request as it was',
    description: 'Sends again what no service could handle, once its cause is mended. Prints the new job id.',
    examples: ['sandbus dead-letters replay 1200'],
    exits: ['notFound', 'unavailable', 'busFull'],
  }).action(
    exitsWith(async (number: string, options: Json) =>
      (await actions()).replay(parseRecordNumber(number), options),
    ),
  );
}
