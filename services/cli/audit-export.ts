/** `sandbus audit export`: what is in the ledger now, for other tools. */
import { once } from 'node:events';
import { link, open, rm, stat } from 'node:fs/promises';
import type { Entry, SandbusClient } from '../client/index.ts';
import { UsageError } from '../platform/errors.ts';
import { reasonOf } from '../platform/file-reasons.ts';
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
      await sink.finish();
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
  /** The export is complete. */
  finish(): Promise<void>;
  /** Whether or not it is. */
  close(): Promise<void>;
}

function openSink(file: string | undefined): Promise<Sink> {
  return file === undefined ? Promise.resolve(standardOutput) : openFile(file);
}

const standardOutput: Sink = {
  write: async (text) => {
    if (!process.stdout.write(text)) await once(process.stdout, 'drain');
  },
  finish: async () => undefined,
  close: async () => undefined,
};

/** Under another name until it is complete, so that nobody takes a part for the whole. */
async function openFile(file: string): Promise<Sink> {
  const cannot = (cause: unknown): never => {
    throw new UsageError(`cannot write --out ${file}: ${reasonOf(cause)}`);
  };
  if (await stat(file).catch(() => null)) cannot({ code: 'EEXIST' });
  const unfinished = `${file}.${process.pid}.unfinished`;
  const handle = await open(unfinished, 'wx', 0o600).catch(cannot);
  return {
    write: (text) => handle.appendFile(text).catch(cannot),
    // Fails also where somebody else has made the file meanwhile.
    finish: () =>
      handle
        .sync()
        .then(() => link(unfinished, file))
        .catch(cannot),
    close: async () => {
      await handle.close();
      await rm(unfinished, { force: true });
    },
  };
}
