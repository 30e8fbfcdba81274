/** Files as the kubelet mounts a Secret or a ConfigMap: `name` → `..data/name`, `..data` → a folder of its own for each version. */
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';

/**
 * Puts a new version of all files into `folder`, by exchanging one link, and removes the one before (AtomicWriter of
 * Kubernetes, pkg/volume/util/atomic_writer.go, in which names that are gone lose their links as well).
 */
export function mountFiles(folder: string, files: Readonly<Record<string, string | Uint8Array>>): void {
  mkdirSync(folder, { recursive: true });
  const data = join(folder, '..data');
  const before = linkedTo(data);
  const version = mkdtempSync(join(folder, '..version_'));
  chmodSync(version, 0o755);
  for (const [name, content] of Object.entries(files)) writeFileSync(join(version, name), content);
  symlinkSync(basename(version), join(folder, '..data_tmp'));
  renameSync(join(folder, '..data_tmp'), data);
  for (const name of Object.keys(files))
    if (linkedTo(join(folder, name)) === null) symlinkSync(join('..data', name), join(folder, name));
  if (before !== null) rmSync(join(folder, before), { recursive: true });
}

function linkedTo(path: string): string | null {
  try {
    return readlinkSync(path);
  } catch {
    return null;
  }
}
