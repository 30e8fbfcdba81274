/** `sandbus audit syscalls --plugin NAME`: what a plugin used of what it may, over all its runs. */
import { z } from 'zod';
import { messageOf, UsageError } from '../platform/errors.ts';
import { runChild } from '../platform/process.ts';
import type { SyscallOptions } from './audit.ts';
import { loadCliConfig, toolEnvironment } from './config.ts';
import { exitCode } from './exit-codes.ts';
import { endProgress, print, printJson, showProgress } from './output.ts';
import { withClient } from './session.ts';
import type { Filter } from './syscall-use.ts';
import { SyscallUse } from './syscall-use.ts';
import { printable, renderTable } from './table.ts';

export function syscalls(options: SyscallOptions): Promise<number> {
  return withClient(async (client) => {
    const filter = await readFilter(loadCliConfig().launcher);
    const use = new SyscallUse(filter);
    for await (const { jobId } of client.allJobs({
      plugin: options.plugin,
      state: 'finished',
      limit: 1000,
    })) {
      const result = await client.result(jobId);
      if (result?.kind === 'finished') use.add(result.event);
      showProgress(`${use.runs} runs`);
    }
    endProgress();
    if (use.runs === 0)
      throw new UsageError(
        `tenant ${client.tenant} has no run of a plugin ${options.plugin} in the ledger`,
        exitCode('notFound'),
      );
    const summary = use.summary();
    if (options.json) printJson({ plugin: options.plugin, tenant: client.tenant, ...summary });
    else print(render(options.plugin, summary));
    return exitCode('ok');
  }, options);
}

const filterShape = z.object({ digest: z.string(), names: z.array(z.string()).min(1) });

/** The calls that the filter of this installation allows. */
async function readFilter(launcher: string): Promise<Filter> {
  try {
    const { stdout } = await runChild(launcher, ['syscalls', '--json'], toolEnvironment());
    return filterShape.parse(JSON.parse(stdout.toString('utf8')));
  } catch (error) {
    throw new UsageError(
      `the launcher ${launcher} does not say what its filter allows: ${messageOf(error)}; ` +
        'build it with `make -C sandbox-runtime`, or set SANDBUS_LAUNCHER',
    );
  }
}

function render(plugin: string, summary: ReturnType<SyscallUse['summary']>): string {
  const { runs, counted, unavailable, otherFilters, used, neverUsed, refused } = summary;
  const lines = [
    `${plugin}: ${runs} ${runs === 1 ? 'run' : 'runs'}, ${counted} of them counted`,
    ...unavailable.map(({ reason, runs: count }) => `not counted in ${count} runs: ${reason}`),
    ...otherFilters.map(({ digest, runs: count }) => `${count} runs had another filter, ${digest}`),
  ];
  const right = { align: 'right' as const };
  const usedTable = renderTable(
    [{ title: 'USED' }, { title: 'CALLS', ...right }, { title: 'RUNS', ...right }],
    used.map(({ syscall, calls, runs: inRuns }) => [syscall, String(calls), String(inRuns)]),
  );
  const refusedTable = renderTable(
    [{ title: 'REFUSED' }, { title: 'ANSWER' }, { title: 'CALLS', ...right }, { title: 'RUNS', ...right }],
    refused.map(({ syscall, answer, calls, runs: inRuns }) => [
      syscall,
      answer,
      String(calls),
      String(inRuns),
    ]),
  );
  const never = neverUsed.length === 0 ? 'none' : wrapped(neverUsed, 100);
  return [
    `${lines.map(printable).join('\n')}\n`,
    usedTable,
    ...(refused.length === 0 ? ['refused: none\n'] : [refusedTable]),
    `allowed and never used, ${neverUsed.length}:\n${never}\n`,
  ].join('\n');
}

function wrapped(words: readonly string[], width: number): string {
  const lines: string[] = [];
  for (const word of words) {
    const last = lines.at(-1);
    if (last === undefined || last.length + word.length + 1 > width) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines.join('\n');
}
