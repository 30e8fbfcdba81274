/** What the demo says of each job: an object for machines, a row for people, and whether it is what was expected. */
import type { JobResult } from '../../client/index.ts';
import { formatBytes, formatMs } from '../quantities.ts';
import { cpuMsOf, denialsOf, deniedNames, explain, outcomeOf } from '../results.ts';
import type { Column } from '../table.ts';
import { renderTable } from '../table.ts';
import type { DemoCase, Expectation } from './cases.ts';

export interface DemoRow {
  readonly plugin: string;
  readonly runtime: string;
  readonly language: string;
  readonly outcome: string;
  readonly reason: string | null;
  readonly exitCode: number | null;
  readonly wallMs: number | null;
  readonly cpuMs: number | null;
  readonly peakMemoryBytes: number | null;
  /** How many system calls were refused. */
  readonly denied: number | null;
  readonly filterDigest: string | null;
  readonly traceId: string;
  readonly expected: boolean;
}

export interface JudgedJob {
  readonly row: DemoRow;
  readonly deniedNames: readonly string[];
  /** What differs from the expectation; empty when nothing does. */
  readonly faults: readonly string[];
}

/** `result` is null when the job had not ended in time. */
export function judge(demoCase: DemoCase, traceId: string, result: JobResult | null): JudgedJob {
  const { plugin, runtime, language, expect } = demoCase;
  const finished = result?.kind === 'finished' ? result.event : null;
  const faults = result === null ? ['it has not ended'] : faultsOf(expect, result);
  const row = {
    plugin,
    runtime,
    language,
    outcome: result === null ? 'unfinished' : outcomeOf(result),
    reason: result?.kind === 'rejected' ? result.event.reason : (finished?.error?.step ?? null),
    exitCode: finished?.exitCode ?? null,
    wallMs: finished === null ? null : finished.usage.wallMicros / 1000,
    cpuMs: finished === null ? null : cpuMsOf(finished),
    peakMemoryBytes: finished?.usage.peakMemoryBytes ?? null,
    denied: finished === null ? null : denialsOf(finished),
    filterDigest: finished?.sandbox.filterDigest ?? null,
    traceId,
    expected: faults.length === 0,
  };
  return { row, deniedNames: finished === null ? [] : deniedNames(finished), faults };
}

function faultsOf(expect: Expectation, result: JobResult): string[] {
  const faults: string[] = [];
  const must = (ok: boolean, fault: string) => void (ok || faults.push(fault));
  const finished = result.kind === 'finished' ? result.event : null;
  const outcome = outcomeOf(result);
  must(
    outcome === expect.outcome,
    `outcome ${outcome}, not ${expect.outcome} (${explain(result) ?? 'no more is known'})`,
  );
  if (expect.reason !== undefined) {
    const reason = result.kind === 'rejected' ? result.event.reason : null;
    must(reason === expect.reason, `reason ${reason}, not ${expect.reason}`);
  }
  if (expect.exitCode !== undefined)
    must(
      finished?.exitCode === expect.exitCode,
      `exit code ${finished?.exitCode}, not ${expect.exitCode}: ${tailOf(finished?.stderr.inline)}`,
    );
  if (expect.says !== undefined)
    must(
      textOf(finished?.stdout.inline).startsWith(expect.says),
      `standard output does not begin with "${expect.says}"`,
    );
  if (expect.denies !== undefined)
    must(
      finished !== null && deniedNames(finished).includes(expect.denies),
      `${expect.denies} was not refused`,
    );
  return faults;
}

const textOf = (bytes: Uint8Array | undefined): string => Buffer.from(bytes ?? []).toString('utf8');
const tailOf = (bytes: Uint8Array | undefined): string => textOf(bytes).trimEnd().split('\n').at(-1) ?? '';

/** Every job that ran must have had the same filter. */
export function filterDigests(jobs: readonly JudgedJob[]): string[] {
  return [...new Set(jobs.map(({ row }) => row.filterDigest).filter((digest) => digest !== null))];
}

const columns: readonly Column[] = [
  { title: 'PLUGIN' },
  { title: 'RUNTIME' },
  { title: 'OUTCOME' },
  { title: 'WALL', align: 'right' },
  { title: 'CPU', align: 'right' },
  { title: 'PEAK MEMORY', align: 'right' },
  { title: 'DENIED SYSCALLS' },
  { title: '' },
];

export function renderReport(jobs: readonly JudgedJob[]): string {
  return renderTable(columns, jobs.map(cellsOf));
}

function cellsOf({ row, deniedNames, faults }: JudgedJob): string[] {
  const measured = (value: number | null, format: (value: number) => string) =>
    value === null ? '-' : format(value);
  return [
    row.plugin,
    row.language === row.runtime ? row.runtime : `${row.runtime} (${row.language})`,
    [row.outcome, row.reason ?? row.exitCode ?? ''].join(' ').trim(),
    measured(row.wallMs, formatMs),
    measured(row.cpuMs, formatMs),
    measured(row.peakMemoryBytes, formatBytes),
    row.denied === null ? '-' : [row.denied, ...deniedNames].join(' '),
    faults.length === 0 ? 'as expected' : 'NOT EXPECTED',
  ];
}
