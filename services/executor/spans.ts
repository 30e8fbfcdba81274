/** The spans of an attempt that the launcher measured, and what the span of the whole says about its end. */
import type { JobFinished } from '../../schemas/generated/events.ts';
import type { Span, Telemetry } from '../platform/telemetry.ts';
import { failSpan } from '../platform/telemetry.ts';
import type { LauncherEnd } from './launcher.ts';
import type { LauncherResult } from './launcher-result.ts';

/** Records `sandbox.setup` and `plugin` by the launcher's own clock, from the moment at which it was started. */
export function recordRun(telemetry: Telemetry, parent: Span, startMs: number, end: LauncherEnd): void {
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
  if (result.outcome === 'setup-failed') return;
  const attributes = pluginAttributes(result);
  const plugin = telemetry.span('plugin', { parent, startMs: startMs + setupMs, attributes });
  const fault = faultOf(result.outcome, result.exitCode, result.signal);
  if (fault !== null) failSpan(plugin, ...fault);
  plugin.end(startMs + setupMs + result.usage.wallMs);
}

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
  const { usage, denials, exitCode } = result;
  return {
    'sandbus.outcome': result.outcome,
    'sandbus.denials': denials.reduce((sum, { count }) => sum + count, 0),
    'sandbus.memory.peak_bytes': usage.peakMemoryBytes,
    'sandbus.cpu.user_ms': usage.userMs,
    'sandbus.cpu.system_ms': usage.systemMs,
    ...(exitCode === null ? {} : { 'process.exit.code': exitCode }),
  };
}

/** Attributes of the `execute` span, and its status. */
export function describeEnd(span: Span, event: JobFinished): void {
  span.setAttributes({
    'sandbus.outcome': event.outcome,
    'sandbus.attempt': event.attempt,
    'sandbus.denials': event.denials.reduce((sum, { count }) => sum + count, 0),
    'sandbus.memory.peak_bytes': event.usage.peakMemoryBytes,
  });
  if (event.exitCode !== null) span.setAttribute('process.exit.code', event.exitCode);
  const fault = faultOf(event.outcome, event.exitCode, event.signal, event.error?.message);
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
