/** One job from submission to exit code, with the standard streams of this process as those of the plugin. */
import { setTimeout as delay } from 'node:timers/promises';
import type { JobResult, LogItem, SandbusClient, SubmitRequest, Submitted } from '../client/index.ts';
import { exitCode, exitCodeOf } from './exit-codes.ts';
import { describeUpload } from './job-options.ts';
import { endProgress, printJson, say, showProgress, writeBytes } from './output.ts';
import { describeDuplicate, describeGap, explain, resultJson } from './results.ts';

export async function runJob(client: SandbusClient, request: SubmitRequest, json: boolean): Promise<number> {
  const interruption = watchInterruption();
  try {
    const submitted = await submitUnlessInterrupted(client, request, interruption.first);
    if (submitted === null) return exitCode(interruption.outputGone() ? 'brokenPipe' : 'cancelled');
    const { jobId } = submitted;
    void interruption.first.then((reason) => cancel(client, jobId, reason));
    const end = await Promise.race([attend(client, jobId, json), interruption.second]);
    if (end === 'left') return leave(jobId);
    return interruption.outputGone() ? exitCode('brokenPipe') : end;
  } finally {
    interruption.stop();
    // Where standard input did not end, it would keep this process alive.
    process.stdin.destroy();
  }
}

/** How long an interrupted submission may take to say whether the bus has the job. */
const lastWordMs = 2_000;

/**
 * Null when it was interrupted before the bus had the job. The bus may have it although its answer has not come yet: a
 * job that nobody waits for must not run, so the answer is waited for a little, and then the job is cancelled as any.
 */
async function submitUnlessInterrupted(
  client: SandbusClient,
  request: SubmitRequest,
  interrupted: Promise<string>,
): Promise<Submitted | null> {
  const submitting = submit(client, request);
  const outcome = submitting.catch(() => null);
  const first = await Promise.race([submitting, interrupted]);
  if (typeof first !== 'string') return first;
  // Without its end, standard input is no input: what is still being read is not submitted.
  process.stdin.destroy();
  return Promise.race([outcome, delay(lastWordMs, null)]);
}

async function submit(client: SandbusClient, request: SubmitRequest) {
  const submitted = await client.submit({
    ...request,
    onProgress: (progress) => showProgress(describeUpload(progress)),
  });
  endProgress();
  if (submitted.duplicate) say(describeDuplicate(submitted));
  return submitted;
}

/** Passes the output on until the job has ended. */
async function attend(client: SandbusClient, jobId: string, json: boolean): Promise<number> {
  const ended = client.wait(jobId);
  ended.catch(() => undefined);
  let lostBytes = 0;
  if (!json) for await (const item of client.logs(jobId, { follow: true })) lostBytes += await passOn(item);
  const result = await ended;
  if (json) printJson(resultJson(result));
  else tell(result);
  return lostBytes > 0 ? exitCode('notRun') : exitCodeOf(result);
}

/** Writes output, or says what is lost. Returns how many bytes are. */
async function passOn(item: LogItem): Promise<number> {
  if (item.kind === 'output') {
    // A reader that has gone is an interruption, and told there.
    await writeBytes(process[item.stream], item.bytes).catch(() => undefined);
    return 0;
  }
  say(`sandbus: ${describeGap(item)}`);
  return item.missingBytes;
}

function tell(result: JobResult): void {
  const sentence = explain(result);
  if (sentence !== null) say(`sandbus: job ${result.event.jobId}: ${sentence}`);
}

async function cancel(client: SandbusClient, jobId: string, reason: string): Promise<void> {
  await client
    .cancel(jobId, reason)
    .catch((error: unknown) => say(`sandbus: cannot cancel job ${jobId}: ${String(error)}`));
}

function leave(jobId: string): number {
  say(`sandbus: not waiting for job ${jobId} to end; \`sandbus wait ${jobId}\` does`);
  return exitCode('cancelled');
}

const signalNames = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * The first interruption, a signal or a reader of the output that has gone, cancels the job; the plugin's last output
 * still comes. A second signal leaves at once.
 */
function watchInterruption() {
  const first = Promise.withResolvers<string>();
  const second = Promise.withResolvers<'left'>();
  let signals = 0;
  let outputGone = false;
  const onSignal = (signal: NodeJS.Signals) => {
    signals += 1;
    if (signals === 1) first.resolve(`${signal} at the command line`);
    else second.resolve('left');
  };
  const onOutputError = () => {
    outputGone = true;
    first.resolve('nobody reads the output any more');
  };
  for (const signal of signalNames) process.on(signal, onSignal);
  for (const stream of [process.stdout, process.stderr])
    stream.removeAllListeners('error').on('error', onOutputError);
  return {
    first: first.promise,
    second: second.promise,
    outputGone: () => outputGone,
    stop: () => {
      for (const signal of signalNames) process.off(signal, onSignal);
    },
  };
}
