/** What `sandbus submit | wait | logs | cancel | ps | show` do. */
import type { Entry, JobResult, JobSummary, SandbusClient } from '../client/index.ts';
import { resultOf } from '../client/index.ts';
import { UsageError } from '../platform/errors.ts';
import { exitCode, exitCodeOf } from './exit-codes.ts';
import type { JobOptions } from './job-options.ts';
import { describeUpload, toRequest } from './job-options.ts';
import { endProgress, print, printJson, say, showProgress, writeBytes } from './output.ts';
import { formatBytes, formatMs, formatTime } from './quantities.ts';
import {
  cpuMsOf,
  deniedNames,
  describeDuplicate,
  describeGap,
  explain,
  outcomeOf,
  resultJson,
} from './results.ts';
import { withClient } from './session.ts';
import { printable, renderTable } from './table.ts';
import { renderSpanTree } from './trace-tree.ts';

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

export function wait(jobId: string, options: Json): Promise<number> {
  return withClient(async (client) => {
    await mustKnow(client, jobId);
    const result = await client.wait(jobId);
    if (options.json) printJson(resultJson(result));
    else print(`${printable(summaryOf(result))}\n`);
    return exitCodeOf(result);
  });
}

function resultLine(result: JobResult): string {
  const sentence = explain(result);
  return `result   ${sentence === null ? summaryOf(result) : `${outcomeOf(result)}: ${sentence}`}`;
}

function summaryOf(result: JobResult): string {
  return (
    explain(result) ?? (result.kind === 'finished' ? `exited with ${result.event.exitCode}` : result.kind)
  );
}

export function logs(jobId: string, options: Json & { follow?: true }): Promise<number> {
  return withClient(async (client) => {
    await mustKnow(client, jobId);
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
    const job = await mustKnow(client, jobId);
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
    const jobs = await client.jobs({ limit: options.limit ?? 50 });
    const shown = jobs.filter(({ state }) => options.all || !/^(finished|rejected|cancelled)$/.test(state));
    if (options.json) for (const job of shown) printJson(job);
    else if (shown.length > 0) print(jobTable(shown));
    else say(options.all ? 'no jobs' : 'no jobs are queued or running; --all shows those that have ended');
    return exitCode('ok');
  });
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

export function show(jobId: string, options: Json): Promise<number> {
  return withClient(async (client) => {
    await mustKnow(client, jobId);
    const entries: Entry[] = [];
    for await (const entry of client.records({ jobId, follow: false })) entries.push(entry);
    const spans = await client.spans(jobId);
    const result = entries.map(resultOf).find((found) => found !== null) ?? null;
    if (options.json) {
      const events = entries.map(({ record, event }) => ({
        ...record,
        payload: undefined,
        event: event?.value ?? null,
      }));
      printJson({ jobId, result: result === null ? null : resultJson(result), events, spans });
      return exitCode('ok');
    }
    print(`job ${jobId}\n\n${eventTable(entries)}`);
    if (result !== null) print(`\n${printable(resultLine(result))}\n${usageOf(result)}`);
    if (spans.length > 0) print(`\ntrace ${spans[0]?.traceId}\n${renderSpanTree(spans)}`);
    return exitCode('ok');
  });
}

function eventTable(entries: readonly Entry[]): string {
  const columns = [
    { title: 'SEQUENCE', align: 'right' as const },
    { title: 'RECORDED (UTC)' },
    { title: 'EVENT' },
    { title: 'BY' },
  ];
  const rows = entries.map(({ record }) => [
    String(record.tenantSequence),
    new Date(record.recordedAt / 1000).toISOString().slice(0, 23).replace('T', ' '),
    record.kind,
    record.signer,
  ]);
  return renderTable(columns, rows);
}

function usageOf(result: JobResult): string {
  if (result.kind !== 'finished') return '';
  const { event } = result;
  const denied = deniedNames(event);
  const lines = [
    `ran      ${formatMs(event.usage.wallMicros / 1000)}, CPU ${formatMs(cpuMsOf(event))}, peak ${formatBytes(event.usage.peakMemoryBytes)}, ${event.runtime} on ${event.executor}`,
    `output   stdout ${formatBytes(event.stdout.totalBytes)}, stderr ${formatBytes(event.stderr.totalBytes)}`,
    `refused  ${denied.length === 0 ? 'no system call' : denied.join(', ')}`,
    `filter   ${event.sandbox.filterDigest}`,
    ...event.artifacts.map(
      ({ name, size, sha256 }) => `artifact ${name}, ${formatBytes(size)}, SHA-256 ${sha256}`,
    ),
    ...event.skippedOutputs.map(({ name, reason }) => `not kept ${name}: ${reason}`),
  ];
  return `${lines.map(printable).join('\n')}\n`;
}

/**
 * The job as the ledger knows it. One that was submitted a moment ago may not be recorded yet: it has a little time.
 */
async function mustKnow(client: SandbusClient, jobId: string): Promise<JobSummary> {
  for (let tries = 0; tries < 5; tries++) {
    const job = await client.job(jobId);
    if (job !== null) return job;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  throw new UsageError(`there is no job ${jobId} of tenant ${client.tenant}`, exitCode('notFound'));
}
