/** `sandbus environment` and `sandbus exit-codes`, also `sandbus help …`: what no single command's help can say. */
import type { Command } from 'commander';
import { define, exitsWith } from './command.ts';
import { exitCodes } from './exit-codes.ts';

interface Json {
  readonly json?: true;
}

export function registerTopics(program: Command): void {
  define(program, {
    usage: 'environment',
    summary: 'the environment variables that Sandbus understands',
    examples: ['sandbus help environment'],
  }).action(exitsWith(environment));
  define(program, {
    usage: 'exit-codes',
    summary: 'what each exit code means',
    examples: ['sandbus help exit-codes', 'sandbus exit-codes --json | jq -r .notRun.code'],
  }).action(exitsWith(codes));
}

async function environment(options: Json): Promise<undefined> {
  const { knownVariables } = await import('../platform/config.ts');
  if (options.json) return await json(knownVariables);
  await table(['VARIABLE', 'MEANING'], Object.entries(knownVariables));
}

async function codes(options: Json): Promise<undefined> {
  if (options.json) return await json(exitCodes);
  const rows = Object.values(exitCodes).map(({ code, meaning }) => [String(code), meaning] as const);
  await table(
    ['CODE', 'MEANING'],
    [...rows, ['else', "run, wait: the plugin's own code, or 128 + its signal"]],
  );
}

async function json(value: unknown): Promise<undefined> {
  (await import('./output.ts')).printJson(value);
}

async function table(titles: readonly string[], rows: readonly (readonly string[])[]): Promise<void> {
  const { print } = await import('./output.ts');
  const { renderTable } = await import('./table.ts');
  const columns = titles.map((title) => ({ title }));
  print(renderTable(columns, rows));
}
