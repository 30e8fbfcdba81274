/** The record of a job as lines for a person: a label, and what there is to say. Whatever is long stays in `--json`. */
import type { JobFinished, Standing } from '../client/index.ts';
import type { JobRecord } from './job-record.ts';
import { gpuAccessesOf, sayStep } from './job-record.ts';
import { formatBytes, formatMs, formatTime } from './quantities.ts';
import { cpuMsOf, explain, outcomeOf } from './results.ts';
import { printable, renderTable } from './table.ts';

/** What is known beside the events. */
export interface RecordFacts {
  /** Owners of keys in the trust store at hand. */
  readonly owners: ReadonlyMap<string, string>;
  readonly standing: Standing | null;
  readonly spans: number;
}

type Line = readonly [label: string, text: string];

const labelWidth = 11;
/** More of a kind than this stay in `--json`. */
const mostListed = 8;

export function renderRecord(record: JobRecord, facts: RecordFacts): string {
  const lines = (list: readonly Line[]) =>
    list.map(([label, text]) => `${label.padEnd(labelWidth)}${printable(text)}\n`).join('');
  return [
    `job ${record.jobId} of tenant ${record.tenant}: ${headline(record)}\n`,
    lines([...submissionLines(record), ...signatureLines(record, facts), ...routeLines(record)]),
    stepTable(record),
    lines([...resultLines(record), ...ledgerLines(record, facts)]),
  ]
    .filter((part) => part !== '')
    .join('\n');
}

function headline({ result, entries }: JobRecord): string {
  if (result === null) return entries.at(-1)?.record.kind ?? 'unknown';
  return result.kind === 'finished' && result.event.outcome === 'exited'
    ? `exited with ${result.event.exitCode}`
    : outcomeOf(result);
}

function submissionLines({ submitted }: JobRecord): Line[] {
  if (submitted === null) return [];
  const { plugin, args, env, stdin, inputs, labels, requiresGpu, network, maxAttempts } = submitted;
  const asks = [
    ...(requiresGpu ? ['a GPU'] : []),
    ...(network === 'none' ? [] : [`network ${network}`]),
    ...(maxAttempts > 1 ? [`${maxAttempts} attempts`] : []),
  ];
  return [
    ['submitted', `${formatTime(submitted.submittedAt / 1000)} UTC`],
    ['plugin', `${plugin.name}, ${formatBytes(plugin.content.size)}, SHA-256 ${plugin.content.sha256}`],
    ...listed(
      'arguments',
      args.map((arg) => JSON.stringify(arg)),
    ),
    ...listed(
      'environment',
      Object.entries(env).map(([name, value]) => `${name}=${value}`),
    ),
    ...(stdin === null ? [] : [['input', `${formatBytes(stdin.size)} on standard input`] as Line]),
    ...listed(
      'files',
      inputs.map(({ name, content }) => `${name} (${formatBytes(content.size)})`),
    ),
    ...listed(
      'labels',
      Object.entries(labels).map(([name, value]) => `${name}=${value}`),
    ),
    ...listed('asks for', asks),
  ];
}

function signatureLines({ verified }: JobRecord, { owners }: RecordFacts): Line[] {
  if (verified === null) return [];
  const { keyIds, trustStoreVersion, trustStoreDigest, policyDigest } = verified;
  return [
    ...keyIds.map((id): Line => ['signed by', `${owners.get(id) ?? 'owner not known here'}, key ${id}`]),
    ['trusted by', `store ${trustStoreVersion} (${short(trustStoreDigest)}), policy ${short(policyDigest)}`],
  ];
}

function routeLines({ routed, started }: JobRecord): Line[] {
  if (routed === null) return [];
  const { runtime, deviceClass, evidence, decidedBy, spec } = routed;
  const { memoryBytes, cpuMillis, wallMs, processes, outputBytes, tmpBytes } = spec.limits;
  const why = evidence.map(({ source, detail }) => `${source}: ${detail}`).join('; ');
  return [
    ['route', `${runtime}.${deviceClass}, decided by its ${decidedBy}`],
    ['because', why],
    [
      'limits',
      `${formatBytes(memoryBytes)}, ${cpuMillis / 1000} CPU, ${formatMs(wallMs)}, ${processes} processes, ` +
        `output ${formatBytes(outputBytes)}, files ${formatBytes(tmpBytes)}`,
    ],
    ...started.map(
      ({ attempt, executor, startedAt }): Line => [
        `attempt ${attempt}`,
        `on ${executor}, ${formatTime(startedAt / 1000)} UTC`,
      ],
    ),
  ];
}

function stepTable({ entries }: JobRecord): string {
  const beganAt = entries[0]?.record.recordedAt ?? 0;
  const right = { align: 'right' as const };
  const columns = [
    { title: 'NUMBER', ...right },
    { title: 'RECORDED (UTC)' },
    { title: 'EVENT' },
    { title: 'AFTER', ...right },
    { title: 'BY' },
    { title: '' },
  ];
  const rows = entries.map((entry) => [
    String(entry.record.tenantSequence),
    new Date(entry.record.recordedAt / 1000).toISOString().slice(0, 23).replace('T', ' '),
    entry.record.kind,
    `+${formatMs((entry.record.recordedAt - beganAt) / 1000)}`,
    entry.record.signer,
    sayStep(entry),
  ]);
  return renderTable(columns, rows);
}

function resultLines({ result, superseded }: JobRecord): Line[] {
  if (result === null) return [];
  const sentence = explain(result);
  const said = sentence === null ? headlineOf(result) : `${outcomeOf(result)}: ${sentence}`;
  const late = superseded.map(
    ({ attempt, outcome }): Line => [
      'too late',
      `attempt ${attempt} ended as ${outcome.replaceAll('_', '-')}`,
    ],
  );
  return [['result', said], ...(result.kind === 'finished' ? finishedLines(result.event) : []), ...late];
}

const headlineOf = (result: NonNullable<JobRecord['result']>): string =>
  result.kind === 'finished' ? `exited with ${result.event.exitCode}` : result.kind;

function finishedLines(event: JobFinished): Line[] {
  const { usage, stdout, stderr, artifacts, skippedOutputs } = event;
  return [
    [
      'ran',
      [
        formatMs(usage.wallMicros / 1000),
        `CPU ${formatMs(cpuMsOf(event))}`,
        `peak ${usage.peakMemoryBytes === null ? 'unknown' : formatBytes(usage.peakMemoryBytes)}`,
        ...(usage.peakProcesses === null ? [] : [plural(usage.peakProcesses, 'process', 'processes')]),
        `${event.runtime} on ${event.executor}`,
      ].join(', '),
    ],
    ...listed(
      'killed',
      usage.oomVictims.map(({ program, pid }) => `${program} (process ${pid}), for lack of memory`),
    ),
    ...sandboxLines(event),
    ...accountLines(event),
    ['output', `stdout ${streamText(stdout)}, stderr ${streamText(stderr)}`],
    ...artifacts.map(
      ({ name, size, sha256 }): Line => ['artifact', `${name}, ${formatBytes(size)}, SHA-256 ${sha256}`],
    ),
    ...skippedOutputs.map(({ name, reason }): Line => ['not kept', `${name}: ${reason}`]),
  ];
}

const streamText = ({ totalBytes, truncated }: JobFinished['stdout']): string =>
  `${formatBytes(totalBytes)}${truncated ? ' (cut)' : ''}`;

function sandboxLines({ sandbox, setupMicros }: JobFinished): Line[] {
  const setupMs = Object.values(setupMicros).reduce((sum, micros) => sum + micros, 0) / 1000;
  const landlock = sandbox.landlockAbi === 0 ? 'no Landlock' : `Landlock ${sandbox.landlockAbi}`;
  return [
    [
      'sandbox',
      `${sandbox.namespaces.length} namespaces, cgroup ${sandbox.cgroup}, ${landlock}, ` +
        `${sandbox.uid === null ? '' : `uid ${sandbox.uid}, `}network ${sandbox.network}, set up in ${formatMs(setupMs)}`,
    ],
    ['filter', sandbox.filterDigest],
  ];
}

/** What was counted; where that was not possible, why not. */
function accountLines(event: JobFinished): Line[] {
  const { syscalls, denials, probes, executions } = event;
  const counts = Object.entries(syscalls.counts).toSorted(([, a], [, b]) => b - a);
  const calls = counts.map(([name, count]) => `${name} ${count}`);
  return [
    syscalls.available
      ? ['calls', `${syscalls.total} of ${calls.length} kinds: ${some(calls)}`]
      : ['calls', `not counted: ${syscalls.unavailableReason}`],
    ['refused', denials.length === 0 ? 'no system call' : some(denials.map(refusalText))],
    ...(probes.length === 0 ? [] : [['not there', some(probes.map(refusalText))] as Line]),
    executions.available
      ? [
          'executed',
          some(
            executions.entries.map(({ path }) => path),
            executions.dropped,
          ) || 'nothing',
        ]
      : ['executed', `not recorded: ${executions.unavailableReason}`],
    ['GPU', gpuText(event)],
  ];
}

const refusalText = ({ syscall, number, rule, count, answer }: JobFinished['denials'][number]): string =>
  `${syscall === 'unknown' ? `call ${number}` : syscall}${rule === null ? '' : ` (${rule})`} ${count} × ${answer}`;

function gpuText(event: JobFinished): string {
  const { devices, sandbox } = event;
  if (!devices.available) return `access not recorded: ${devices.unavailableReason}`;
  const opened = gpuAccessesOf(event).map(
    ({ device, allowed, denied }) => `${device} opened ${allowed}, refused ${denied}`,
  );
  if (sandbox.devices.length === 0 && opened.length === 0) return 'none granted, none opened';
  return some([`granted ${sandbox.devices.join(' ') || 'none'}`, ...opened]);
}

function ledgerLines({ entries }: JobRecord, { standing, spans }: RecordFacts): Line[] {
  const last = entries.at(-1)?.record;
  if (last === undefined) return [];
  const sequences = entries.map(({ record }) => record.sequence).join(' ');
  const traceId = entries
    .find(({ record }) => record.traceparent !== null)
    ?.record.traceparent?.split('-')[1];
  const covering = standing?.covering ?? null;
  return [
    ['ledger', `sequences ${sequences}`],
    ['last leaf', Buffer.from(last.leafHash).toString('hex')],
    covering === null
      ? ['checkpoint', 'none covers it yet; the next one is signed within a second']
      : [
          'checkpoint',
          `${covering.treeSize} records, ${formatTime(covering.at / 1000)} UTC, root ${covering.rootHash}`,
        ],
    ['trace', traceId === undefined ? 'none' : `${traceId}, ${spans} spans; --trace draws them`],
  ];
}

const plural = (count: number, one: string, more: string): string => `${count} ${count === 1 ? one : more}`;

/** One line, unless there is nothing to list. */
const listed = (label: string, texts: readonly string[]): Line[] =>
  texts.length === 0 ? [] : [[label, some(texts)]];

function some(texts: readonly string[], more = 0): string {
  const left = Math.max(0, texts.length - mostListed) + more;
  return `${texts.slice(0, mostListed).join(', ')}${left > 0 ? `, and ${left} more` : ''}`;
}

const short = (digest: string): string => digest.slice(0, 12);
