/** Files that are replaced whole. */
import { mkdir, rename, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Beside the file, then renamed: nobody ever reads half of it. */
export async function writeFileSafely(file: string, content: string, mode: number): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const unfinished = `${file}.${process.pid}.tmp`;
  await writeFile(unfinished, content, { mode, flush: true });
  await rename(unfinished, file);
}
