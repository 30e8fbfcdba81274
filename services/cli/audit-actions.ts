/** What `sandbus audit tail | list | show` do. */
import type { Entry, SandbusClient } from '../client/index.ts';
import { UsageError } from '../platform/errors.ts';
import type { AuditOptions } from './audit.ts';
import { exitCode } from './exit-codes.ts';
import { print, printJson, say, toJson } from './output.ts';
import { withClient } from './session.ts';
import { printable } from './table.ts';

export function tail(options: AuditOptions): Promise<number> {
  const enough = new AbortController();
  process.once('SIGINT', () => enough.abort());
  process.once('SIGTERM', () => enough.abort());
  return withClient(async (client) => {
    const { signal } = enough;
    const after = (await afterOf(client, options)) ?? 'now';
    let last = typeof after === 'number' ? after : null;
    printHead(options);
    for await (const entry of client.records({ jobId: options.job, after, signal })) {
      printEntry(entry, options);
      last = entry.record.tenantSequence;
    }
    if (last !== null && process.stderr.isTTY)
      say(`\nsandbus: seen up to record number ${last}; go on with \`sandbus audit tail --after ${last}\``);
    return exitCode('ok');
  }, options);
}

export function list(options: AuditOptions): Promise<number> {
  return withClient(async (client) => {
    let left = options.limit ?? Number.POSITIVE_INFINITY;
    const after = await afterOf(client, options);
    printHead(options);
    for await (const entry of client.records({ jobId: options.job, after, follow: false })) {
      if (left-- <= 0) break;
      printEntry(entry, options);
    }
    return exitCode('ok');
  }, options);
}

/** The number after which reading begins; undefined when nothing was said about it. Throws UsageError. */
export async function afterOf(
  client: SandbusClient,
  { after, since }: Pick<AuditOptions, 'after' | 'since'>,
): Promise<number | undefined> {
  if (since === undefined) return after;
  if (after !== undefined) throw new UsageError('--after and --since: one of them');
  return 'number' in since ? since.number - 1 : client.position(new Date(since.ms));
}

export function show(number: number, options: AuditOptions): Promise<number> {
  return withClient(async (client) => {
    for await (const entry of client.records({ after: number - 1, follow: false })) {
      if (entry.record.tenantSequence !== number) break;
      print(options.json ? `${toJson(entryJson(entry))}\n` : `${indented(entry)}\n`);
      return exitCode('ok');
    }
    throw new UsageError(
      `there is no record of the number ${number} of tenant ${client.tenant}: \`sandbus audit list\` has the numbers; ` +
        'those of verify and proofs are ledger sequences',
      exitCode('notFound'),
    );
  });
}

/** For people; in a pipe every line is a record. */
function printHead({ json }: AuditOptions): void {
  if (process.stdout.isTTY && !json)
    print(`NUMBER  ${'RECORDED (UTC)'.padEnd(23)}  ${'JOB'.padEnd(36)}  ${'EVENT'.padEnd(16)}  BY\n`);
}

function printEntry(entry: Entry, options: AuditOptions): void {
  const { record } = entry;
  if (options.json) {
    printJson(entryJson(entry));
    return;
  }
  const at = new Date(record.recordedAt / 1000).toISOString().slice(0, 23).replace('T', ' ');
  print(
    `${String(record.tenantSequence).padStart(6)}  ${at}  ${record.jobId}  ${printable(record.kind.padEnd(16))}  ${printable(record.signer)}\n`,
  );
}

/** The record with its event beside it, in place of the event's bytes. */
export function entryJson({ record, event }: Entry): object {
  const { payload, ...rest } = record;
  return {
    ...rest,
    event: event === null ? null : { name: event.name, ...event.value },
    payloadBytes: payload?.length ?? null,
  };
}

function indented(entry: Entry): string {
  const text = JSON.stringify(JSON.parse(toJson(entryJson(entry))), null, 2);
  return text.split('\n').map(printable).join('\n');
}
