/** How every command is defined, so that each has `--json`, an example, and its exit codes in its help. */
import type { Command } from 'commander';
import { UsageError } from '../platform/errors.ts';
import type { ExitName } from './exit-codes.ts';
import { exitCodes } from './exit-codes.ts';

export interface CommandText {
  /** `name <argument>`, as commander reads it. */
  readonly usage: string;
  /** One line, for the list of commands. */
  readonly summary: string;
  /** Sentences for the command's own help. */
  readonly description?: string;
  readonly examples: readonly string[];
  /** Beside 0 and 2, which all commands but `run` have. */
  readonly exits?: readonly ExitName[];
  /** What wrong options exit with; `usage` unless set. */
  readonly wrongUse?: ExitName;
}

export function define(parent: Command, text: CommandText): Command {
  const exits = new Set<ExitName>(['ok', ...(text.exits ?? []), text.wrongUse ?? 'usage']);
  const codes = [...exits]
    .map((name) => exitCodes[name])
    .sort((a, b) => a.code - b.code)
    .map(({ code, meaning }) => `  ${String(code).padStart(3)}  ${meaning}`);
  const examples = text.examples.map((example) => `  ${example}`);
  return parent
    .command(text.usage)
    .summary(text.summary)
    .description(text.description ?? `${text.summary.charAt(0).toUpperCase()}${text.summary.slice(1)}.`)
    .option('--json', 'print JSON for machines')
    .addHelpText('after', ['', 'Examples:', ...examples, '', 'Exit codes:', ...codes].join('\n'));
}

/** What an action returns is the exit code; nothing means 0. */
export function exitsWith<A extends unknown[]>(action: (...values: A) => Promise<number | undefined>) {
  return async (...values: A): Promise<void> => {
    process.exitCode = (await action(...values)) ?? 0;
  };
}

/** A parser of one option's value, for an option that may be given once. Its errors name the option. */
export function once<T>(option: string, parse: (text: string) => T) {
  return (text: string, previous: T | undefined): T => {
    if (previous !== undefined) throw new UsageError(`${option} is given twice`);
    return named(option, () => parse(text));
  };
}

/** The same for an option that may be given again and again. */
export function many<T>(option: string, parse: (text: string) => T) {
  return (text: string, previous: readonly T[] | undefined): readonly T[] => [
    ...(previous ?? []),
    named(option, () => parse(text)),
  ];
}

function named<T>(option: string, parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    if (error instanceof UsageError) throw new UsageError(`${option}: ${error.message}`);
    throw error;
  }
}

/** One of the words. */
export function choice<T extends string>(words: readonly T[]) {
  return (text: string): T => {
    const found = words.find((word) => word === text);
    if (found === undefined)
      throw new UsageError(`${text}: must be ${words.slice(0, -1).join(', ')} or ${words.at(-1)}`);
    return found;
  };
}
