/** One job from submission to exit code, with the standard streams of this process as those of the plugin. */
import { setTimeout as delay } from 'node:timers/promises';
import type { JobResult, LogItem, SandbusClient, SubmitRequest, Submitted } from '../client/index.ts';
import { exitCode, exitCodeOf } from './exit-codes.ts';
import { describeUpload } from './job-options.ts';
import { endProgress, outputFault, printed, say, showProgress, toJson, writeBytes } from './output.ts';
import { describeDuplicate, describeGap, explain, resultJson } from './results.ts';

export async function runJob(client: SandbusClient, request: SubmitRequest, json: boolean): Promise<number> {
  const interruption = watchInterruption();
  try {
    const submitted = await submitUnlessInterrupted(client, request, interruption.first);
    if (submitted === null) return interruption.outputLost() ?? exitCode('cancelled');
    const { jobId } = submitted;
    void interruption.first.then((reason) => cancel(client, jobId, reason));
    const end = await Promise.race([attend(client, jobId, json), interruption.second]);
    if (end === 'left') return leave(jobId);
    return interruption.outputLost() ?? end;
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
  // What cannot be written is an interruption, and told there.
  if (json) await printed(`${toJson(resultJson(result))}\n`).catch(() => undefined);
  else tell(result);
  return lostBytes > 0 ? exitCode('notRun') : exitCodeOf(result);
}

/** Writes output, or says what is lost. Returns how many bytes are. */
async function passOn(item: LogItem): Promise<number> {
  if (item.kind === 'output') {
    // What cannot be written is an interruption, and told there.
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
  let outputLost: number | null = null;
  const onSignal = (signal: NodeJS.Signals) => {
    signals += 1;
    if (signals === 1) first.resolve(`${signal} at the command line`);
    else second.resolve('left');
  };
  const onOutputError = (stream: 'output' | 'error', error: NodeJS.ErrnoException) => {
    if (outputLost !== null) return;
    const isGone = error.code === 'EPIPE';
    outputLost = exitCode(isGone ? 'brokenPipe' : 'notRun');
    const reason = isGone ? 'nobody reads the output any more' : outputFault(stream, error);
    if (!isGone) say(`sandbus: ${reason}`);
    first.resolve(reason);
  };
  for (const signal of signalNames) process.on(signal, onSignal);
  process.stdout.removeAllListeners('error').on('error', (error) => onOutputError('output', error));
  process.stderr.removeAllListeners('error').on('error', (error) => onOutputError('error', error));
  return {
    first: first.promise,
    second: second.promise,
    /** What to exit with because of it; null while all is passed on. */
    outputLost: () => outputLost,
    stop: () => {
      for (const signal of signalNames) process.off(signal, onSignal);
    },
  };
}
