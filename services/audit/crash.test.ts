/** A real audit process, killed again and again while events come: nothing is lost, nothing is doubled. */
import { after, test } from 'node:test';
import { fixture, stopTelemetry } from './fixture.ts';
import { killRounds } from './kill-rounds.ts';

after(stopTelemetry);

// Longer than the default: what a dead process held unacked comes again only after the ack wait of 30 s.
const options = { timeout: 1100_000 };

test(
  'kills between commit and ack, between commit and feed, between deletion and note',
  options,
  async () => {
    await using f = await fixture();
    await killRounds(f, { kills: 6, jobsPerLife: 60, location: f.ledgerFile });
  },
);
