/** The spans of an attempt that the launcher measured, and what the span of the whole says about its end. */
import type { JobFinished, JobRouted } from '../../schemas/generated/events.ts';
import { countDenials, recordRunTime, recordSetup } from '../platform/metrics.ts';
import type { Span, Telemetry } from '../platform/telemetry.ts';
import { failSpan } from '../platform/telemetry.ts';
import type { LauncherEnd } from './launcher.ts';
import type { LauncherResult } from './launcher-result.ts';

/** What ran, as the spans tell it. */
export type RunJob = Pick<JobRouted, 'plugin' | 'runtime' | 'deviceClass'>;

/** Records `sandbox.setup` and `plugin` by the launcher's own clock, from the moment at which it was started. */
export function recordRun(
  telemetry: Telemetry,
  { parent, startMs, job }: { parent: Span; startMs: number; job: RunJob },
  end: LauncherEnd,
): void {
  if (end.kind === 'silent') {
    const span = telemetry.span('sandbox.setup', { parent, startMs });
    failSpan(span, 'launcher', end.message);
    span.end();
    return;
  }
  const { result } = end;
  const setupMs = setupMicros(result.timings) / 1000;
  const setup = telemetry.span('sandbox.setup', { parent, startMs, attributes: timingAttributes(result) });
  if (result.error !== null) failSpan(setup, result.error.step, result.error.message);
  setup.end(startMs + setupMs);
  measure(job, result, setupMs);
  if (result.outcome === 'setup-failed') return;
  const attributes = { ...processAttributes(job), ...pluginAttributes(result) };
  const plugin = telemetry.span('plugin', { parent, startMs: startMs + setupMs, attributes });
  const fault = faultOf(result.outcome, result.exitCode, result.signal);
  if (fault !== null) failSpan(plugin, ...fault);
  plugin.end(startMs + setupMs + result.usage.wallMs);
}

function measure(job: RunJob, result: LauncherResult, setupMs: number): void {
  const attributes = { 'sandbus.runtime': job.runtime, 'sandbus.device_class': job.deviceClass };
  recordSetup(setupMs, attributes);
  if (result.outcome === 'setup-failed') return;
  recordRunTime(result.usage.wallMs, { ...attributes, 'sandbus.outcome': result.outcome });
  const denials = denialsIn(result);
  if (denials > 0) countDenials(denials, attributes);
}

/** By OpenTelemetry's conventions for processes. Arguments stay out: they may be long, and are in the record. */
function processAttributes({ plugin, runtime }: RunJob): Record<string, string> {
  return {
    'process.executable.name': plugin.name,
    ...(runtime === 'native' ? {} : { 'process.runtime.name': runtime }),
  };
}

const denialsIn = ({ denials }: Pick<LauncherResult, 'denials'>): number =>
  denials.reduce((sum, { count }) => sum + count, 0);

/** Steps after the end of the plugin begin with `end-`. */
function setupMicros(timings: LauncherResult['timings']): number {
  return Object.entries(timings).reduce(
    (sum, [step, micros]) => sum + (step.startsWith('end-') ? 0 : micros),
    0,
  );
}

function timingAttributes({ timings, filterDigest }: LauncherResult): Record<string, string | number> {
  const steps = Object.entries(timings).map(([step, micros]) => [`sandbus.setup.${step}_us`, micros]);
  return { ...Object.fromEntries(steps), 'sandbus.filter_digest': filterDigest };
}

function pluginAttributes(result: LauncherResult): Record<string, string | number> {
  const { usage, exitCode } = result;
  return {
    'sandbus.outcome': result.outcome,
    'sandbus.denials': denialsIn(result),
    ...peakAttribute(usage),
    'sandbus.cpu.user_ms': usage.userMs,
    'sandbus.cpu.system_ms': usage.systemMs,
    ...(exitCode === null ? {} : { 'process.exit.code': exitCode }),
  };
}

function peakAttribute({ peakMemoryBytes }: { readonly peakMemoryBytes: number | null }) {
  return peakMemoryBytes === null ? {} : { 'sandbus.memory.peak_bytes': peakMemoryBytes };
}

/** Attributes of the `execute` span, and its status. Outcomes are written as the documents write them. */
export function describeEnd(span: Span, event: JobFinished): void {
  const outcome = event.outcome.replaceAll('_', '-');
  span.setAttributes({
    'sandbus.outcome': outcome,
    'sandbus.attempt': event.attempt,
    'sandbus.denials': event.denials.reduce((sum, { count }) => sum + count, 0),
    ...peakAttribute(event.usage),
  });
  if (event.exitCode !== null) span.setAttribute('process.exit.code', event.exitCode);
  const fault = faultOf(outcome, event.exitCode, event.signal, event.error?.message);
  if (fault !== null) failSpan(span, ...fault);
}

/** `error.type` and a sentence; null when all went well. */
function faultOf(
  outcome: string,
  exitCode: number | null,
  signal: number | null,
  message?: string,
): [type: string, message: string] | null {
  if (outcome !== 'exited')
    return [outcome, message ?? `${outcome}${signal === null ? '' : ` (signal ${signal})`}`];
  return exitCode === 0 ? null : ['nonzero_exit', `exit code ${exitCode}`];
}
