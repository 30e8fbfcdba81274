/** What `sandbus submit | wait | logs | cancel | ps` do. */
import type { JobResult, JobSummary, SandbusClient } from '../client/index.ts';
import { exitCode, exitCodeOf } from './exit-codes.ts';
import type { JobOptions } from './job-options.ts';
import { describeUpload, toRequest } from './job-options.ts';
import { knownJob } from './known-job.ts';
import { endProgress, print, printJson, say, showProgress, writeBytes } from './output.ts';
import { formatMs, formatTime } from './quantities.ts';
import { describeDuplicate, describeGap, explain, resultJson } from './results.ts';
import { withClient } from './session.ts';
import { printable, renderTable } from './table.ts';

interface Json {
  readonly json?: true;
}

export async function submit(
  plugin: string,
  args: readonly string[],
  options: JobOptions & { stdin?: string },
) {
  const request = await toRequest(plugin, args, options);
  const stdin =
    options.stdin === undefined ? null : options.stdin === '-' ? process.stdin : { path: options.stdin };
  return withClient(async (client) => {
    const onProgress = (progress: Parameters<typeof describeUpload>[0]) =>
      showProgress(describeUpload(progress));
    const submitted = await client.submit({ ...request, stdin, onProgress });
    endProgress();
    if (submitted.duplicate) say(describeDuplicate(submitted));
    if (options.json) printJson(submitted);
    else print(`${submitted.jobId}\n`);
    return exitCode('ok');
  });
}

/** Services that are started again are back by then. */
const startsAgainMs = 20_000;

export function wait(jobId: string, options: Json): Promise<number> {
  return withClient(async (client) => {
    await knownJob(client, jobId, startsAgainMs);
    const result = await client.wait(jobId);
    if (options.json) printJson(resultJson(result));
    else print(`${printable(summaryOf(result))}\n`);
    return exitCodeOf(result);
  });
}

function summaryOf(result: JobResult): string {
  return (
    explain(result) ?? (result.kind === 'finished' ? `exited with ${result.event.exitCode}` : result.kind)
  );
}

export function logs(jobId: string, options: Json & { follow?: true }): Promise<number> {
  return withClient(async (client) => {
    await knownJob(client, jobId);
    let lostBytes = 0;
    for await (const item of client.logs(jobId, { follow: options.follow ?? false })) {
      if (options.json) printJson(item);
      else if (item.kind === 'output') await writeBytes(process[item.stream], item.bytes);
      else say(`sandbus: ${describeGap(item)}`);
      if (item.kind === 'gap') lostBytes += item.missingBytes;
    }
    return exitCode(lostBytes > 0 ? 'failed' : 'ok');
  });
}

export function cancel(jobId: string, options: Json & { reason: string }): Promise<number> {
  return withClient(async (client) => {
    const job = await knownJob(client, jobId);
    const over = /^(finished|rejected|cancelled)$/.test(job.state);
    if (!over) await client.cancel(jobId, options.reason);
    if (options.json) printJson({ jobId, asked: !over, state: job.state });
    else
      print(
        over
          ? `job ${jobId} has ended already: ${job.outcome ?? job.state}\n`
          : `asked for job ${jobId} to end\n`,
      );
    return exitCode('ok');
  });
}

export function ps(options: Json & { all?: true; limit?: number }): Promise<number> {
  return withClient(async (client) => {
    const jobs = await newest(client, options.limit ?? 50);
    const shown = jobs.filter(({ state }) => options.all || !/^(finished|rejected|cancelled)$/.test(state));
    if (options.json) for (const job of shown) printJson(job);
    else if (shown.length > 0) print(jobTable(shown));
    else say(options.all ? 'no jobs' : 'no jobs are queued or running; --all shows those that have ended');
    return exitCode('ok');
  });
}

/** The most that one answer has. */
const jobsPerPage = 1000;

async function newest(client: SandbusClient, count: number): Promise<JobSummary[]> {
  const jobs: JobSummary[] = [];
  for await (const job of client.allJobs({ limit: Math.min(count, jobsPerPage) }))
    if (jobs.push(job) === count) break;
  return jobs;
}

function jobTable(jobs: readonly JobSummary[]): string {
  const titles = ['JOB', 'PLUGIN', 'RUNTIME', 'STATE', 'OUTCOME', 'SUBMITTED (UTC)', 'FOR'];
  const rows = jobs.map((job) => [
    job.jobId,
    job.plugin ?? '-',
    job.runtime ?? '-',
    job.state,
    [job.outcome?.replaceAll('_', '-'), job.reason].filter(Boolean).join(' ') || '-',
    formatTime(job.submittedAtMs),
    formatMs(Math.max(0, job.updatedAtMs - job.submittedAtMs)),
  ]);
  return renderTable(
    titles.map((title) => ({ title })),
    rows,
  );
}
