/**
 * The full-bus test at its full length: audit stands still while many jobs are submitted.
 *   npm run test:full-bus -- [--jobs 10000]
 */
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { startTestSystem } from '../with-system.ts';
import { fill, openJobs, refusedPublishes } from './fill.ts';

const { values } = parseArgs({ options: { jobs: { type: 'string', default: '10000' } } });
const say = (text: string) => void process.stderr.write(`${text}\n`);

async function fullBusTest(jobs: number): Promise<string[]> {
  const system = await startTestSystem({}, { sizeFactor: 0.02 });
  const signalAudit = (name: NodeJS.Signals) => process.kill(system.system.pidOf('audit'), name);
  try {
    signalAudit('SIGSTOP');
    const { accepted, refused, fullest } = await fill(system, jobs);
    say(
      `${accepted.length} accepted, refused: ${JSON.stringify([...refused])}, fullest ${fullest.toFixed(2)}`,
    );
    signalAudit('SIGCONT');
    const faults = [...refused.keys()]
      .filter((code) => code !== 'BUS_FULL')
      .map((code) => `refused: ${code}`);
    if (refused.size === 0) faults.push('nothing was refused: the bus was not full');
    return [
      ...faults,
      ...(await unended(() => openJobs(system, accepted))),
      ...(await refusedPublishes(system.stateDir)),
    ];
  } finally {
    signalAudit('SIGCONT');
    await system.stop();
  }
}

/** Waits as long as jobs go on ending. */
async function unended(look: () => Promise<string[]>): Promise<string[]> {
  let open = await look();
  for (let stillMs = 0; open.length > 0 && stillMs < 90_000; stillMs += 3_000) {
    await delay(3_000);
    const now = await look();
    if (now.length < open.length) stillMs = 0;
    open = now;
    say(`${open.length} jobs are open`);
  }
  return open.map((jobId) => `job ${jobId} was accepted and has not ended`);
}

const faults = await fullBusTest(Number(values.jobs));
for (const fault of faults.slice(0, 20)) say(`FAULT ${fault}`);
say(faults.length === 0 ? 'all holds' : `${faults.length} faults`);
process.exitCode = faults.length === 0 ? 0 : 1;
