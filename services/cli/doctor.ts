/** `sandbus doctor`: what is there, what is missing, and how to mend it. */
import type { Command } from 'commander';
import { define, exitsWith } from './command.ts';
import { exitCode } from './exit-codes.ts';

export function registerDoctor(program: Command): void {
  define(program, {
    usage: 'doctor',
    summary: 'what this host can enforce and run, and how to mend what is missing',
    description:
      'Checks the controls of the sandbox, the runtimes, NATS and the services behind it, the trust store and the ' +
      'policy. Exits with 1 when something is missing without which no job runs.',
    examples: ['sandbus doctor', "sandbus doctor --json | jq 'select(.ok | not)'"],
    exits: ['failed'],
  }).action(exitsWith(doctor));
}

async function doctor(options: { json?: true }): Promise<number> {
  const { checkEverything } = await import('./checks.ts');
  const { loadCliConfig } = await import('./config.ts');
  const { print, printJson } = await import('./output.ts');
  const { printable } = await import('./table.ts');
  let ok = true;
  for await (const check of checkEverything(loadCliConfig())) {
    ok &&= check.ok || !check.required;
    if (options.json) {
      printJson(check);
      continue;
    }
    const mark = check.ok ? 'ok      ' : check.required ? 'missing ' : 'absent  ';
    print(`${printable(`${mark} ${check.name}: ${check.detail}`)}\n`);
    if (!check.ok && check.mend !== null) print(`         ${printable(check.mend)}\n`);
  }
  if (!options.json)
    print(ok ? 'everything that jobs need is there\n' : 'something that jobs need is missing: see above\n');
  return exitCode(ok ? 'ok' : 'failed');
}
