/** `sandbus query-token add | list | remove`: who may use the query API. */
import type { Command } from 'commander';
import { define, exitsWith, once } from './command.ts';
import { parseEnd } from './quantities.ts';

export interface TokenOptions {
  readonly tenant?: string;
  readonly operator?: true;
  /** Milliseconds since 1970. */
  readonly expires?: number;
  readonly json?: true;
}

const actions = () => import('./query-token-actions.ts');

export function registerQueryTokens(program: Command): void {
  const tokens = program
    .command('query-token')
    .summary('tokens for the query API of the ledger')
    .description(
      'The audit service answers queries over HTTP, read-only, at SANDBUS_QUERY_ADDRESS (`sandbus up` prints it). Tokens are ' +
        'kept as digests in SANDBUS_QUERY_TOKENS; a running service follows at once.',
    );
  define(tokens, {
    usage: 'add <name>',
    summary: 'make a token, and print it: it is shown this once',
    examples: [
      'sandbus query-token add dashboard --tenant acme --expires 90d',
      'sandbus query-token add auditor --operator --json | jq -r .token',
    ],
  })
    .option('--tenant <tenant>', 'sees this tenant')
    .option('--operator', 'sees every tenant')
    .option(
      '--expires <time>',
      '90d, or a day or instant in UTC (default: never)',
      once('--expires', (text) => parseEnd(text, Date.now())),
    )
    .action(exitsWith(async (name: string, options: TokenOptions) => (await actions()).add(name, options)));
  define(tokens, {
    usage: 'list',
    summary: 'the tokens that there are, without what they are',
    examples: ['sandbus query-token list'],
  }).action(exitsWith(async (options: TokenOptions) => (await actions()).list(options)));
  define(tokens, {
    usage: 'remove <name>',
    summary: 'a token is good for nothing from now on',
    examples: ['sandbus query-token remove dashboard'],
    exits: ['notFound'],
  }).action(
    exitsWith(async (name: string, options: TokenOptions) => (await actions()).remove(name, options)),
  );
}
