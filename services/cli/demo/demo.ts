/** The demo from beginning to end. Whatever it starts, it stops, on Ctrl-C too. */
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { BuiltPlugin } from '../../../test/plugins/build.ts';
import { buildPlugins } from '../../../test/plugins/build.ts';
import type { JobResult, SandbusClient, SpanRecord } from '../../client/index.ts';
import { connect, faultOf, resultOf } from '../../client/index.ts';
import { installation } from '../../platform/config.ts';
import type { SigningKey } from '../../trust/index.ts';
import { nobodysState } from '../config.ts';
import { exitCode } from '../exit-codes.ts';
import { print, printJson, say } from '../output.ts';
import { formatMs } from '../quantities.ts';
import { signPlugin } from '../signing.ts';
import type { System } from '../system.ts';
import { startAll } from '../system.ts';
import { renderWaterfall } from '../waterfall.ts';
import type { DemoCase } from './cases.ts';
import { makeCases } from './cases.ts';
import { provenRecord } from './proof.ts';
import type { JudgedJob } from './report.ts';
import { filterDigests, judge, renderReport } from './report.ts';
import type { Workplace } from './workplace.ts';
import { makeWorkplace } from './workplace.ts';

export interface DemoOptions {
  readonly json: boolean;
  readonly keep: boolean;
}

/** Compiled plugins are kept between demos: compiling them takes longer than all the rest. */
const builtPlugins = join(installation.root, '.sandbus/plugins');
const jobsDeadlineMs = 60_000;

export async function runDemo(options: DemoOptions): Promise<number> {
  const interruption = watchInterruption();
  const beganMs = performance.now();
  const building = buildPlugins(builtPlugins);
  const workplace = await makeWorkplace();
  say(`state, ledger and logs: ${workplace.folder}${options.keep ? '' : ' (removed at the end)'}`);
  say('building plugins and starting NATS and the services');
  const { stateDir } = workplace;
  const starting = startAll({ stateDir, port: 0, logs: 'files', environment: nobodysState });
  try {
    const [plugins, system] = await Promise.all([building, starting]);
    const code = await withDemoClient(system, (client) =>
      show({ client, plugins, workplace, json: options.json, signal: interruption.signal }),
    );
    if (!options.json && code === 0)
      print(`everything as expected, in ${formatMs(performance.now() - beganMs)}\n`);
    return code;
  } catch (error) {
    if (interruption.signal.aborted) return exitCode('cancelled');
    throw error;
  } finally {
    const [system] = await Promise.allSettled([starting, building]);
    if (system.status === 'fulfilled') await system.value.stop();
    if (!options.keep) await workplace.remove();
    interruption.forget();
  }
}

async function withDemoClient<T>(system: System, work: (client: SandbusClient) => Promise<T>): Promise<T> {
  const client = await connect({ url: system.url, credentials: system.credentialsOf('default') });
  return work(client).finally(() => client.close());
}

interface Show {
  readonly client: SandbusClient;
  readonly plugins: readonly BuiltPlugin[];
  readonly workplace: Workplace;
  readonly json: boolean;
  readonly signal: AbortSignal;
}

/** Runs the jobs and shows what came of them. Returns the exit code. */
async function show({ client, plugins, workplace, json, signal }: Show): Promise<number> {
  signal.throwIfAborted();
  const cases = await makeCases(plugins);
  say(`running ${cases.length} jobs`);
  const jobs = await runCases(client, cases, workplace.key, signal);
  const judgements = jobs.map(({ judged }) => judged);
  if (json) for (const { row } of judgements) printJson(row);
  else await tell(client, jobs, workplace.stateDir);
  for (const plugin of plugins)
    if ('skipped' in plugin) say(`skipped ${plugin.name} (${plugin.language}): ${plugin.skipped}`);
  const digests = filterDigests(judgements);
  if (digests.length !== 1)
    say(`every job must have the same filter, and these have ${digests.length}: ${digests.join(', ')}`);
  for (const { row, faults } of judgements)
    if (!row.expected) say(`not expected: ${row.plugin}: ${faults.join('; ')}`);
  return exitCode(digests.length === 1 && judgements.every(({ row }) => row.expected) ? 'ok' : 'failed');
}

interface DemoJob {
  readonly jobId: string;
  readonly judged: JudgedJob;
}

/** Submits all at once, then follows the ledger until each has its result. */
async function runCases(
  client: SandbusClient,
  cases: readonly DemoCase[],
  key: SigningKey,
  signal: AbortSignal,
): Promise<DemoJob[]> {
  const submitted = await Promise.all(cases.map((demoCase) => submitCase(client, demoCase, key)));
  const jobIds = submitted.map(({ jobId }) => jobId);
  const results = await collectResults(client, jobIds, signal);
  return cases.map((demoCase, index) => {
    const { jobId = '', traceId = '' } = submitted[index] ?? {};
    return { jobId, judged: judge(demoCase, traceId, results.get(jobId) ?? null) };
  });
}

function submitCase(client: SandbusClient, demoCase: DemoCase, key: SigningKey) {
  const { plugin: name, bytes, signature, args, limits } = demoCase;
  const { envelope } = signPlugin({ fileName: name, bytes }, key, {}, Date.now() - 1000);
  const sent = signature === 'tampered' ? Buffer.concat([bytes, Buffer.from('#\n')]) : bytes;
  return client.submit({
    plugin: { name, bytes: sent },
    envelope: signature === 'none' ? null : envelope,
    args,
    stdin: Buffer.from('a line of standard input\n'),
    limits,
    labels: { demo: 'yes' },
  });
}

/** A job without a result has not ended in time, or its result cannot be read. */
async function collectResults(
  client: SandbusClient,
  jobIds: readonly string[],
  interrupted: AbortSignal,
): Promise<Map<string, JobResult>> {
  const results = new Map<string, JobResult>();
  const open = new Set(jobIds);
  const signal = AbortSignal.any([interrupted, AbortSignal.timeout(jobsDeadlineMs)]);
  for await (const entry of client.records({ signal })) {
    const { jobId } = entry.record;
    const result = resultOf(entry);
    const fault = faultOf(entry);
    if (result !== null) results.set(jobId, result);
    if (fault !== null) say(fault.message);
    if (result !== null || fault !== null) open.delete(jobId);
    if (open.size === 0) break;
  }
  interrupted.throwIfAborted();
  return results;
}

async function tell(client: SandbusClient, jobs: readonly DemoJob[], stateDir: string): Promise<void> {
  print(`\n${renderReport(jobs.map(({ judged }) => judged))}\n`);
  const [digest] = filterDigests(jobs.map(({ judged }) => judged));
  print(`the same filter in every record: ${digest}\n`);
  const one = jobs.find(({ judged }) => judged.row.plugin === 'hello.py') ?? jobs[0];
  if (one === undefined) return;
  print(`\nthe path of ${one.judged.row.plugin}, trace ${one.judged.row.traceId}\n`);
  print(`${renderWaterfall(await wholeTrace(client, one.jobId), process.stdout.columns ?? 120)}\n`);
  print(`\n${await provenRecord(client, one.jobId, stateDir)}\n`);
}

/** Services store their spans a moment after they end, so a trace is whole only after a while. */
async function wholeTrace(client: SandbusClient, jobId: string): Promise<SpanRecord[]> {
  let spans: SpanRecord[] = [];
  for (const giveUpAt = performance.now() + 3000; performance.now() < giveUpAt; await delay(100)) {
    spans = await client.spans(jobId);
    const names = new Set(spans.map(({ name }) => name));
    if (['submit', 'verify', 'route', 'execute', 'audit.commit'].every((name) => names.has(name))) break;
  }
  return spans;
}

function watchInterruption() {
  const interruption = new AbortController();
  const onSignal = (signal: NodeJS.Signals) => {
    say(`${signal}: stopping`);
    interruption.abort();
  };
  process.on('SIGINT', onSignal);
  process.on('SIGTERM', onSignal);
  return {
    signal: interruption.signal,
    forget: () => {
      process.off('SIGINT', onSignal);
      process.off('SIGTERM', onSignal);
    },
  };
}
