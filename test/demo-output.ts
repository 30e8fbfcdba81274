// Looks at what `sandbus demo --json` wrote: one object a line, complete, and one filter for every runtime.
//   sh deploy/node test/demo-output.ts FILE
import { readFileSync } from 'node:fs';

const fields = [
  'plugin',
  'runtime',
  'language',
  'outcome',
  'reason',
  'exitCode',
  'wallMs',
  'cpuMs',
  'peakMemoryBytes',
  'denied',
  'filterDigest',
  'traceId',
  'expected',
];
const runtimes = ['native', 'python', 'node', 'ruby', 'bash'];

function faultsOf(text: string): string[] {
  const lines = text.split('\n').filter((line) => line !== '');
  const jobs = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  const faults = jobs.flatMap((job) =>
    fields.filter((field) => !(field in job)).map((field) => `${job.plugin}: no field "${field}"`),
  );
  const ran = jobs.filter((job) => job.outcome === 'exited');
  for (const runtime of runtimes)
    if (!ran.some((job) => job.runtime === runtime))
      faults.push(`no job of runtime ${runtime} ran to its end`);
  const digests = new Set(ran.map((job) => job.filterDigest));
  if (digests.size !== 1) faults.push(`${digests.size} different filter digests: ${[...digests].join(', ')}`);
  const refused = jobs.filter((job) => job.outcome !== 'exited' || Number(job.denied) > 0);
  if (refused.length < 4) faults.push(`only ${refused.length} jobs failed, of the four that must`);
  return faults;
}

const [file] = process.argv.slice(2);
if (file === undefined) throw new Error('usage: sh deploy/node test/demo-output.ts FILE');
const faults = faultsOf(readFileSync(file, 'utf8'));
for (const fault of faults) console.error(`demo: ${fault}`);
process.exitCode = faults.length === 0 ? 0 : 1;
