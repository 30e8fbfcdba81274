/**
 * Counts the real starts of user code, from inside the sandbox: the plugin's first command writes its job's id into a
 * named pipe. The pipe lies in the prefix of the interpreter that the operator chose, which every job of that runtime
 * sees read-only at its own path; a read-only mount does not keep anybody from writing into a pipe. So the count rests
 * on nothing that executor or launcher say.
 */
import { createReadStream } from 'node:fs';
import { chmod, copyFile, mkdir, mkdtemp, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { runChild } from '../../services/platform/process.ts';

export interface Starts {
  /** For SANDBUS_BASH. */
  readonly bash: string;
  /** What a plugin writes its job id to. */
  readonly pipe: string;
  readonly folder: string;
  /** How often user code of a job was started. */
  of(jobId: string): number;
  readonly total: number;
  close(): Promise<void>;
}

export async function countStarts(): Promise<Starts> {
  // Below /tmp, where Landlock lets a job write as far as mounts and modes do.
  const folder = await mkdtemp('/tmp/sandbus-starts-');
  await chmod(folder, 0o755);
  const bash = join(folder, 'bin/bash');
  const pipe = join(folder, 'lib/starts');
  await mkdir(join(folder, 'bin'));
  await mkdir(join(folder, 'lib'));
  await copyFile('/usr/bin/bash', bash);
  await runChild('/usr/bin/mkfifo', [pipe], {});
  await chmod(pipe, 0o666);
  // Open for both, so that it never ends and no plugin waits for a reader.
  const file = await open(pipe, 'r+');
  const counts = new Map<string, number>();
  let total = 0;
  const stream = createReadStream(pipe, { fd: file, autoClose: false });
  createInterface({ input: stream }).on('line', (jobId) => {
    if (jobId === '') return;
    counts.set(jobId, (counts.get(jobId) ?? 0) + 1);
    total++;
  });
  return {
    ...{ bash, pipe, folder },
    of: (jobId) => counts.get(jobId) ?? 0,
    get total() {
      return total;
    },
    close: async () => {
      // A read that waits in the pipe holds the file: one more line ends it.
      stream.destroy();
      await file.write('\n');
      await file.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
