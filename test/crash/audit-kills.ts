/**
 * The audit service killed many times under load, on either store; then the feed is whole and the ledger verifies.
 *
 *   npm run test:audit-kills [-- --kills 50] [--postgres]
 */
import { parseArgs } from 'node:util';
import { fixture, stopTelemetry } from '../../services/audit/fixture.ts';
import { killRounds } from '../../services/audit/kill-rounds.ts';
import { startPostgres } from '../../services/ledger/postgres/server-fixture.ts';

const { values } = parseArgs({
  options: { kills: { type: 'string', default: '50' }, postgres: { type: 'boolean', default: false } },
});
const kills = Number(values.kills);
const jobsPerLife = 25;
const startedAt = performance.now();
const postgres = values.postgres ? await startPostgres() : null;
try {
  await using f = await fixture();
  const location = (await postgres?.database()) ?? f.ledgerFile;
  const env = postgres === null ? {} : { SANDBUS_LEDGER_URL: location };
  await killRounds(f, { kills, jobsPerLife, location, env });
} finally {
  await postgres?.stop();
  await stopTelemetry();
}
const seconds = Math.round((performance.now() - startedAt) / 1000);
console.log(
  `audit killed ${kills} times in ${seconds} s: ${2 * kills * jobsPerLife} events, none lost, none twice`,
);
