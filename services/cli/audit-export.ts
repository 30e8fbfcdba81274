/** `sandbus audit export`: what is in the ledger now, for other tools. */
import { once } from 'node:events';
import type { FileHandle } from 'node:fs/promises';
import { open } from 'node:fs/promises';
import type { Entry, SandbusClient } from '../client/index.ts';
import { messageOf, UsageError } from '../platform/errors.ts';
import type { ExportOptions } from './audit.ts';
import { afterOf, entryJson } from './audit-actions.ts';
import { exitCode } from './exit-codes.ts';
import { OcsfMapper } from './ocsf.ts';
import { endProgress, say, showProgress, toJson } from './output.ts';
import { withClient } from './session.ts';

export function exportRecords(options: ExportOptions): Promise<number> {
  return withClient(async (client) => {
    const sink = await openSink(options.out);
    try {
      const lines = await writeAll(client, options, sink);
      endProgress();
      if (options.out !== undefined) say(`${lines} lines in ${options.out}`);
    } finally {
      await sink.close();
    }
    return exitCode('ok');
  }, options);
}

async function writeAll(client: SandbusClient, options: ExportOptions, sink: Sink): Promise<number> {
  const mapper = new OcsfMapper(client);
  const after = await afterOf(client, options);
  const untilMicros = (options.until ?? Number.POSITIVE_INFINITY) * 1000;
  let lines = 0;
  for await (const entry of client.records({ jobId: options.job, after, follow: false })) {
    if (entry.record.recordedAt >= untilMicros) break;
    const objects = options.format === 'ocsf' ? await mapper.eventsOf(entry) : [entryJson(entry)];
    for (const object of objects) await sink.write(`${toJson(object)}\n`);
    lines += objects.length;
    if (lines % 1000 === 0 && options.out !== undefined)
      showProgress(`${lines} lines, up to ${whenOf(entry)}`);
  }
  return lines;
}

const whenOf = ({ record }: Entry): string => new Date(record.recordedAt / 1000).toISOString();

interface Sink {
  write(text: string): Promise<void>;
  close(): Promise<void>;
}

async function openSink(file: string | undefined): Promise<Sink> {
  if (file === undefined)
    return {
      write: async (text) => {
        if (!process.stdout.write(text)) await once(process.stdout, 'drain');
      },
      close: async () => undefined,
    };
  const handle: FileHandle = await open(file, 'wx', 0o600).catch((cause: unknown) => {
    throw new UsageError(`cannot write --out ${file}: ${messageOf(cause)}`);
  });
  return {
    write: async (text) => void (await handle.appendFile(text)),
    close: async () => {
      await handle.sync().finally(() => handle.close());
    },
  };
}
