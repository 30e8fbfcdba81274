/** `sandbus environment`, also `sandbus help environment`: the variables there are. */
import type { Command } from 'commander';
import { define, exitsWith } from './command.ts';

export function registerEnvironment(program: Command): void {
  define(program, {
    usage: 'environment',
    summary: 'the environment variables that Sandbus understands',
    examples: ['sandbus help environment'],
  }).action(exitsWith(async (options: { json?: true }) => void (await list(options.json === true))));
}

async function list(json: boolean): Promise<void> {
  const { knownVariables } = await import('../platform/config.ts');
  const { print, printJson } = await import('./output.ts');
  const { renderTable } = await import('./table.ts');
  if (json) printJson(knownVariables);
  else print(renderTable([{ title: 'VARIABLE' }, { title: 'MEANING' }], Object.entries(knownVariables)));
}
