/** Submits the planned jobs at an even pace, each until the bus has it, and cancels those that are to be cancelled. */
import { setTimeout as delay } from 'node:timers/promises';
import type { SandbusClient } from '../../services/client/index.ts';
import { uuidV7 } from '../../services/client/index.ts';
import { OperationalError } from '../../services/platform/errors.ts';
import type { TestSystem } from '../with-system.ts';
import type { PlannedJob } from './schedule.ts';

export interface Submission {
  readonly jobId: string;
  readonly plan: PlannedJob;
  /** More than once when the bus was away: the bus may then hold it twice, and the second is a dead letter. */
  tries: number;
}

export const pluginName = 'crash.sh';
export const printedBytes = 30_000;

/** Tells of its start first of all, then does what its arguments say. */
export const pluginSource = (pipe: string): Buffer =>
  Buffer.from(`#!/bin/bash
echo "$SANDBUS_JOB_ID" > ${pipe}
case $1 in
  sleep | cancel) sleep "$2" ;;
  print) printf '%*s\\n' ${printedBytes} x ;;
  daemon) (setsid sleep 300 < /dev/null > /dev/null 2>&1 &) ;;
esac
echo "$SANDBUS_JOB_ID"
exit 7
`);

/** The standard output of a job that ran to its end. */
export const expectedOutput = ({ jobId, plan }: Submission): string =>
  `${plan.kind === 'print' ? `${'x'.padStart(printedBytes)}\n` : ''}${jobId}\n`;

export async function submitAll(
  system: TestSystem,
  plans: readonly PlannedJob[],
  options: { pipe: string; overMs: number; ended: AbortSignal },
): Promise<Submission[]> {
  const plugin = { name: pluginName, bytes: pluginSource(options.pipe) };
  const envelope = system.sign(plugin.name, plugin.bytes);
  const began = performance.now();
  const submitOne = async (plan: PlannedJob, index: number): Promise<Submission> => {
    const submission: Submission = { jobId: uuidV7(), plan, tries: 0 };
    const request = {
      ...{ plugin, envelope, jobId: submission.jobId, maxAttempts: plan.maxAttempts },
      args: [plan.kind, (plan.sleepMs / 1000).toFixed(3)],
      limits: { wallMs: 60_000, memoryBytes: 64 * 1024 * 1024 },
    };
    const dueMs = began + (options.overMs * index) / plans.length - performance.now();
    await delay(Math.max(0, dueMs), undefined, { signal: options.ended });
    await insist(options.ended, () => {
      submission.tries++;
      return system.client.submit(request);
    });
    if (plan.kind === 'cancel') void cancelLater(system.client, submission, options.ended);
    return submission;
  };
  return Promise.all(plans.map(submitOne));
}

async function cancelLater(client: SandbusClient, { jobId, plan }: Submission, ended: AbortSignal) {
  await delay(plan.cancelAfterMs, undefined, { signal: ended }).catch(() => undefined);
  await insist(ended, () => client.cancel(jobId, 'part of the plan')).catch(() => undefined);
}

async function insist<T>(ended: AbortSignal, action: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await action();
    } catch (error) {
      if (!(error instanceof OperationalError) || ended.aborted) throw error;
      await delay(200, undefined, { signal: ended });
    }
  }
}
