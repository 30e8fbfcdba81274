/**
 * Metrics of the services, by OpenTelemetry: exported by OTLP/HTTP where a collector is named, else they cost nothing.
 * Times are seconds, names and units follow OpenTelemetry's conventions. No job, tenant or plugin is an attribute: their
 * number has no bound.
 */
import type { Attributes } from '@opentelemetry/api';
import { metrics } from '@opentelemetry/api';
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-http';
import type { IMetricReader } from '@opentelemetry/sdk-metrics';
import { PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics';
import { decode } from './codec.ts';
import type { OutgoingEvent } from './events.ts';

export interface MetricsOptions {
  /** Whether a collector is named; the exporter reads its address from the standard variables. */
  readonly exported: boolean;
  readonly intervalMs: number;
}

/** What takes the metrics of this process out of it. */
export function metricReaders({ exported, intervalMs }: MetricsOptions): IMetricReader[] {
  if (!exported) return [];
  const exporter = new OTLPMetricExporter();
  return [
    new PeriodicExportingMetricReader({
      exporter,
      exportIntervalMillis: intervalMs,
      exportTimeoutMillis: Math.min(intervalMs, 30_000),
    }),
  ];
}

/** From a launch of a millisecond to a job of hours. */
const secondBuckets = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3600,
];

const meter = () => metrics.getMeter('sandbus');

function seconds(name: string, description: string) {
  const advice = { explicitBucketBoundaries: secondBuckets };
  const histogram = memo(() => meter().createHistogram(name, { unit: 's', description, advice }));
  return (ms: number, attributes: Attributes) => histogram().record(Math.max(0, ms) / 1000, attributes);
}

function counter(name: string, unit: string, description: string) {
  const made = memo(() => meter().createCounter(name, { unit, description }));
  return (count: number, attributes: Attributes) => made().add(count, attributes);
}

/** Instruments are made when they are first used: the SDK starts after this module is loaded. */
function memo<T>(make: () => T): () => T {
  let made: T | undefined;
  return () => {
    made ??= make();
    return made;
  };
}

/** From the router's decision until an executor took the job, milliseconds. The two clocks may be of two machines. */
export const recordQueueWait = seconds(
  'sandbus.job.queue.duration',
  'Time from routing until an executor took the job',
);
/** Building the sandbox, milliseconds. */
export const recordSetup = seconds('sandbus.sandbox.setup.duration', 'Time in which the sandbox was built');
/** The plugin itself, milliseconds. */
export const recordRunTime = seconds('sandbus.job.run.duration', 'Time for which the plugin ran');
/** Refused system calls; the launcher counts each. */
export const countDenials = counter('sandbus.sandbox.denials', '{call}', 'System calls that policy refused');

const jobsEnded = counter('sandbus.jobs.ended', '{job}', 'Jobs by how they ended');

/** Counts a job once, by whoever's terminal event has won. */
export function countEnded(terminal: OutgoingEvent): void {
  jobsEnded(1, endAttributes(terminal));
}

function endAttributes({ data }: OutgoingEvent): Attributes {
  const { name, value } = decode(data);
  switch (name) {
    case 'JobFinished': {
      const { outcome, runtime, deviceClass } = value;
      const attributes = { 'sandbus.runtime': runtime, 'sandbus.device_class': deviceClass };
      return { 'sandbus.outcome': outcome.replaceAll('_', '-'), ...attributes };
    }
    case 'JobRejected':
      return { 'sandbus.outcome': 'rejected', 'sandbus.stage': value.stage, 'error.type': value.reason };
    default:
      return { 'sandbus.outcome': 'cancelled' };
  }
}

/** How many jobs an executor may run at one time, and how many it runs, whenever it is asked. */
export function observeSlots(slots: number, used: () => number): void {
  const unit = '{job}';
  meter()
    .createObservableUpDownCounter('sandbus.executor.slots.limit', {
      unit,
      description: 'Slots of the executor',
    })
    .addCallback((result) => result.observe(slots));
  meter()
    .createObservableUpDownCounter('sandbus.executor.slots.used', {
      unit,
      description: 'Slots that run a job',
    })
    .addCallback((result) => result.observe(used()));
}
