/** `sandbus artifacts JOB`: the files that a job left in /job/out. */
import { createHash } from 'node:crypto';
import { lstat, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { JobFinished, SandbusClient } from '../client/index.ts';
import { messageOf, OperationalError, UsageError } from '../platform/errors.ts';
import { reasonOf } from '../platform/file-reasons.ts';
import { exitCode } from './exit-codes.ts';
import { makeFolder, streamBytes, writeNew } from './files.ts';
import { knownJob } from './known-job.ts';
import { print, printJson, say } from './output.ts';
import { formatBytes } from './quantities.ts';
import { withClient } from './session.ts';
import { printable, renderTable } from './table.ts';

export interface ArtifactsOptions {
  readonly json?: true;
  readonly out?: string;
}

type Artifact = JobFinished['artifacts'][number];

export function artifacts(jobId: string, options: ArtifactsOptions): Promise<number> {
  return withClient(async (client) => {
    await knownJob(client, jobId);
    const result = await client.result(jobId);
    if (result === null)
      throw new UsageError(
        `job ${jobId} has not ended yet; \`sandbus wait ${jobId}\` waits for it`,
        exitCode('failed'),
      );
    const left = result.kind === 'finished' ? result.event : { artifacts: [], skippedOutputs: [] };
    for (const { name, reason } of left.skippedOutputs) say(`sandbus: ${name} was not kept: ${reason}`);
    if (left.artifacts.length === 0) say(`job ${jobId} left no files in /job/out`);
    else if (options.out === undefined) list(left.artifacts, options);
    else return fetchAll(client, left.artifacts, options.out, options);
    return exitCode('ok');
  });
}

function list(found: readonly Artifact[], { json }: ArtifactsOptions): void {
  if (json) for (const artifact of found) printJson(artifact);
  else
    print(
      renderTable(
        [{ title: 'FILE' }, { title: 'SIZE', align: 'right' }, { title: 'SHA-256' }],
        found.map(({ name, size, sha256 }) => [name, formatBytes(size), sha256]),
      ),
    );
}

/** What cannot be had any more is said, and the rest is fetched. */
async function fetchAll(
  client: SandbusClient,
  found: readonly Artifact[],
  folder: string,
  { json }: ArtifactsOptions,
): Promise<number> {
  const places = found.map((artifact) => ({ artifact, parts: partsOf(artifact.name) }));
  await makeFolder(folder);
  let missing = 0;
  for (const { artifact, parts } of places) {
    const path = join(folder, ...parts);
    try {
      await makeFoldersBelow(folder, parts.slice(0, -1));
      await fetchOne(client, artifact, path);
      if (json) printJson({ ...artifact, path });
      else print(`${printable(path)}\n`);
    } catch (error) {
      if (!(error instanceof OperationalError) || error.code !== 'NOT_FOUND') throw error;
      missing += 1;
      say(`sandbus: ${artifact.name}: ${messageOf(error)}`);
    }
  }
  return exitCode(missing > 0 ? 'failed' : 'ok');
}

/** The names were chosen by the job and told by an executor. Throws UsageError for one that leads out of the folder. */
export function partsOf(name: string): string[] {
  const parts = name.split('/');
  if (name.includes('\0') || parts.some((part) => part === '' || part === '.' || part === '..'))
    throw new UsageError(
      `${JSON.stringify(name)} is no name of a file in a folder: nothing is fetched; \`sandbus show\` tells which executor said so`,
    );
  return parts;
}

/** Folders in `folder`, which is there. Links among them are not followed. */
async function makeFoldersBelow(folder: string, parts: readonly string[]): Promise<void> {
  let path = folder;
  for (const part of parts) {
    path = join(path, part);
    await mkdir(path).catch((cause: NodeJS.ErrnoException) => {
      if (cause.code !== 'EEXIST') throw new UsageError(`cannot make ${path}: ${reasonOf(cause)}`);
    });
    if (!(await lstat(path)).isDirectory())
      throw new UsageError(`${path} is there already, and is no folder`);
  }
}

/** Writes it, unless it is there already with these bytes, as after an earlier try that was interrupted. */
async function fetchOne(client: SandbusClient, { sha256 }: Artifact, path: string): Promise<void> {
  if ((await digestOf(path)) === sha256) return;
  await writeNew(path, client.download(sha256), 0o666);
}

async function digestOf(path: string): Promise<string | null> {
  const found = await lstat(path).catch(() => null);
  if (found?.isFile() !== true) return null;
  const hash = createHash('sha256');
  for await (const bytes of streamBytes(path, 'file')) hash.update(bytes);
  return hash.digest('hex');
}
