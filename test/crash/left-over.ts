/** What may not be there when the system has stopped. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { processesWith } from '../with-system.ts';

const patienceMs = 15_000;

/** Processes, control groups, mounts and temporary files; `places` are the folders that only this system used. */
export async function leftOver(stateDir: string, places: readonly string[]): Promise<string[]> {
  const processes = await Promise.all(places.map((place) => processesWith(place)));
  return [
    ...processes.flat().map((found) => `process ${found}`),
    ...(await staleGroups()).map((group) => `control group ${group}`),
    ...(await mounts(places)).map((mount) => `mount ${mount}`),
    ...(await temporaryFiles(stateDir)).map((file) => `file ${file}`),
  ];
}

/** Groups of jobs in which nothing runs and that nobody removes; those of others here come and go. */
async function staleGroups(): Promise<string[]> {
  const giveUpAt = performance.now() + patienceMs;
  let stale = await emptyGroups();
  while (stale.length > 0 && performance.now() < giveUpAt) {
    await delay(500);
    const now = new Set(await emptyGroups());
    stale = stale.filter((group) => now.has(group));
  }
  return stale;
}

/** The launcher makes its groups directly below its own, which is ours; deeper ones are of other programs. */
async function emptyGroups(): Promise<string[]> {
  const found: string[] = [];
  for (const folder of await ownGroups())
    for (const name of await readdir(folder).catch(() => []))
      if (name.startsWith('sandbus-job-')) {
        const members = await readFile(join(folder, name, 'cgroup.procs'), 'utf8').catch(() => 'gone');
        if (members === '') found.push(join(folder, name));
      }
  return found;
}

/** Folder of our own group in each hierarchy: cgroups(7), /proc/[pid]/cgroup. */
async function ownGroups(): Promise<string[]> {
  const root = '/sys/fs/cgroup';
  const lines = (await readFile('/proc/self/cgroup', 'utf8')).trim().split('\n');
  return lines.flatMap((line) => {
    const [, controllers = '', path = '/'] = line.split(':');
    const name = controllers.replace(/^name=/, '');
    return name === '' ? [join(root, path), join(root, 'unified', path)] : [join(root, name, path)];
  });
}

async function mounts(places: readonly string[]): Promise<string[]> {
  const lines = (await readFile('/proc/self/mountinfo', 'utf8')).split('\n');
  return lines.filter((line) => places.some((place) => line.includes(place)));
}

async function temporaryFiles(stateDir: string): Promise<string[]> {
  const jobs = await readdir(join(stateDir, 'executor/jobs')).catch(() => []);
  const objects = await readdir(join(stateDir, 'executor/objects')).catch(() => []);
  const downloads = await readdir(join(stateDir, 'downloads')).catch(() => []);
  return [...jobs, ...objects.filter((name) => name.startsWith('coming-')), ...downloads];
}
