/** Who gets which key, of all that lie in a state folder. */
import assert from 'node:assert/strict';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { State } from './state.ts';
import { contentsOf, makeState, readState, withoutSecrets } from './state.ts';

describe('deploy/kubernetes/secrets', { skip: withoutSecrets }, () => {
  let state: State;
  before(async () => {
    state = await makeState();
  });
  after(() => state?.remove());

  test('gives each private file to the one whose it is, and some to nobody', async () => {
    const { code, stdout, stderr } = await state.secrets();
    assert.equal(code, 0, stderr);
    const contents = contentsOf(stdout);
    const services = {
      verifier: 'sandbus',
      router: 'sandbus',
      audit: 'sandbus',
      executor: 'sandbus-executors',
    };
    const expected: [file: string, places: string[]][] = [
      ['root.pem', []],
      ['access/tenants/acme.nk', []],
      ['tls/ca.key', []],
      ['tls/tls.key', ['Secret sandbus/nats tls.key']],
      ['access/deployment.nk', ['Secret sandbus/topology nats.nk']],
      ['keys/ledger.pem', ['Secret sandbus/audit ledger-key.pem']],
      ['query-tokens.json', ['Secret sandbus/audit query-tokens.json']],
      ...Object.entries(services).flatMap(([service, namespace]): [string, string[]][] => [
        [`access/${service}.nk`, [`Secret ${namespace}/${service} nats.nk`]],
        [`keys/${service}.pem`, [`Secret ${namespace}/${service} event-key.pem`]],
      ]),
      [
        'trust.json',
        ['ConfigMap sandbus/public trust.json', 'ConfigMap sandbus-executors/public trust.json'],
      ],
    ];
    for (const [file, places] of expected) {
      const bytes = await readState(state, file);
      const found = [...contents].flatMap(([where, files]) =>
        Object.entries(files)
          .filter(([, content]) => content.includes(bytes))
          .map(([key]) => `${where} ${key}`),
      );
      assert.deepEqual(found, places, file);
    }
    assert.equal((await state.secrets()).stdout, stdout, 'the same state makes the same');
  });

  test('prints nothing at all where something is missing, and says what makes it', async () => {
    await rm(join(state.folder, 'trust.json'));
    const { code, stdout, stderr } = await state.secrets();
    assert.deepEqual([code, stdout], [1, '']);
    assert.match(stderr, /trust\.json.*sandbus trust init/);
  });
});
