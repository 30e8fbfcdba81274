/** A cluster of a server that would lose events is refused before anything is made in it; one server of it is not. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { startAll } from '../../services/cli/system.ts';
import { UsageError } from '../../services/platform/errors.ts';
import { Bus } from '../../services/platform/nats/bus.ts';
import { replicaFault } from '../../services/platform/nats/server-version.ts';
import { startTestNats, testedServer } from '../with-nats.ts';

test('replicas on a server that loses them are refused at the start, with the mend', async (t) => {
  const nats = await startTestNats();
  const { serverVersion } = nats.bus;
  try {
    if (replicaFault(serverVersion, 3) === null) return t.skip(`nats-server ${serverVersion} keeps them`);
    await assert.rejects(
      nats.bus.ensureTopology({ replicas: 3, sizeFactor: 0.1 }),
      (error) =>
        error instanceof UsageError && /SANDBUS_REPLICAS=3: .*SANDBUS_REPLICAS=1/.test(error.message),
    );
    assert.equal(nats.bus.serverFault, null, 'one server is no cluster');
  } finally {
    await nats.stop();
  }
});

test('three nodes: all that is deployed has its replicas; or nothing is deployed, and nothing is left', async () => {
  const stateDir = await mkdtemp(join(tmpdir(), 'sandbus-cluster-'));
  const options = { stateDir, port: 0, logs: 'files' as const, natsProgram: testedServer().program };
  try {
    const system = await startAll({ ...options, nodes: 3, replicas: 3, sizeFactor: 0.02 });
    try {
      const bus = await Bus.connect({
        url: system.url,
        name: 'acme',
        credentials: system.credentialsOf('default'),
      });
      assert.equal(bus.serverFault, null);
      await bus.close();
    } finally {
      await system.stop();
    }
  } catch (error) {
    assert.match(String(error), /loses confirmed events of streams with replicas/);
  } finally {
    await rm(stateDir, { recursive: true, force: true });
  }
});
