/** Two machines with one bus: what one has put in force, the other may not undercut. */
import assert from 'node:assert/strict';
import { rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { TestNats } from '../../test/with-nats.ts';
import { eventually, startTestNats } from '../../test/with-nats.ts';
import { systemClock } from '../platform/clock.ts';
import { OperationalError } from '../platform/errors.ts';
import { createLogger } from '../platform/log.ts';
import type { KvBucket } from '../platform/nats/kv.ts';
import { contentBytes, fileSignedBy, ROOT, ROOT_2 } from '../trust/attacks/stores.ts';
import { expectValue } from '../trust/fixture.ts';
import type { SignedTrustStore, TrustStore } from '../trust/index.ts';
import { openTrustStore, publicKeyToPem } from '../trust/index.ts';
import { TrustStoreKeeper } from './keeper.ts';
import { TrustStoreMarks } from './marks.ts';

let nats: TestNats;
let bucket: KvBucket;
before(async () => {
  nats = await startTestNats();
  bucket = await nats.bus.kv('trust');
});
after(() => nats.stop());

const pinned = publicKeyToPem(ROOT.publicKey);

/** A machine with its own copy of the file. */
class Machine {
  readonly file: string;
  keeper: TrustStoreKeeper | null = null;
  readonly seen: (number | null)[] = [];

  constructor(name: string) {
    this.file = join(nats.folder, `${name}.json`);
  }

  async start(marks = new TrustStoreMarks(bucket)): Promise<void> {
    const files = { trustStore: this.file, root: pinned, policy: '' };
    const log = createLogger('test', 'fatal');
    this.keeper = await TrustStoreKeeper.open({ files, marks, clock: systemClock, log });
    this.keeper.onChange((store: TrustStore | null) => this.seen.push(store?.version ?? null));
  }

  async stop(): Promise<void> {
    await this.keeper?.stop();
  }

  async put(bytes: Uint8Array): Promise<void> {
    await writeFile(`${this.file}.new`, bytes);
    await rename(`${this.file}.new`, this.file);
  }

  /** `7`, or the reason for which nothing is in force. */
  async state(): Promise<number | string> {
    const state = await this.keeper?.current();
    return state?.store?.version ?? state?.problem?.reason ?? 'not started';
  }
}

const version = (number: number, threshold = 1) =>
  fileSignedBy([ROOT], contentBytes({ version: number, threshold }));

/** Two machines that run, and a bus that has seen no store. */
async function twoMachines(bytes: Uint8Array, work: (left: Machine, right: Machine) => Promise<void>) {
  const [left, right] = [new Machine('left'), new Machine('right')];
  await bucket.remove('highest');
  try {
    for (const machine of [left, right]) {
      await machine.put(bytes);
      await machine.start();
    }
    await work(left, right);
  } finally {
    await Promise.all([left.stop(), right.stop()]);
    await Promise.all([left, right].map(({ file }) => rm(file, { force: true })));
  }
}

test('a machine that is left behind refuses everything until it has the newer file', () =>
  twoMachines(version(7), async (left, right) => {
    assert.deepEqual([await left.state(), await right.state()], [7, 7]);
    await left.put(version(8));
    assert.equal(await left.state(), 8);
    await eventually('right knows', async () => (await right.state()) === 'TRUST_STORE_OUTDATED');
    await right.put(version(8));
    assert.equal(await right.state(), 8);
    assert.deepEqual([left.seen, right.seen], [[8], [null, 8]]);
  }));

test('two machines with different stores of one version: the second is refused', () =>
  twoMachines(version(7), async (left, right) => {
    await left.put(version(8));
    assert.equal(await left.state(), 8);
    await right.put(version(8, 2));
    assert.equal(await right.state(), 'TRUST_STORE_OUTDATED');
  }));

test('both put a new file in force at one moment, again and again: exactly one content wins each version', () =>
  twoMachines(version(7), async (left, right) => {
    for (let number = 8; number < 28; number += 1) {
      await Promise.all([left.put(version(number)), right.put(version(number, 2))]);
      const states = await Promise.all([left.state(), right.state()]);
      assert.deepEqual(states.filter((state) => state === number).length, 1, `${number}: ${states}`);
    }
  }));

test('an old file is refused by a machine that has never seen a newer one', () =>
  twoMachines(version(7), async (left) => {
    await left.put(version(9));
    assert.equal(await left.state(), 9);
    const fresh = new Machine('fresh');
    await fresh.put(version(8));
    await fresh.start();
    assert.equal(await fresh.state(), 'TRUST_STORE_OUTDATED');
    await fresh.stop();
  }));

test('a mark that was lost is made again', () =>
  twoMachines(version(7), async (left) => {
    await bucket.remove('highest');
    await eventually('the mark is there', async () => (await bucket.get('highest')) !== null);
    assert.equal(await left.state(), 7);
  }));

test('a mark that cannot be read refuses everything, until it can', () =>
  twoMachines(version(7), async (left) => {
    const good = await bucket.get('highest');
    await bucket.put('highest', Buffer.from('{}'));
    await eventually('nothing is in force', async () => (await left.state()) === 'NO_TRUST_STORE');
    await bucket.put('highest', good?.value ?? new Uint8Array());
    await eventually('it is in force again', async () => (await left.state()) === 7);
  }));

test('after a rotation the mark names the new root, and the old root has no say', () =>
  twoMachines(version(7), async (left, right) => {
    const rotated = fileSignedBy([ROOT, ROOT_2], contentBytes({ version: 7 }));
    await left.put(rotated);
    assert.equal(await left.state(), 7);
    assert.deepEqual(expectValue(openTrustStore(rotated, ROOT)).rootLine, [ROOT.keyId, ROOT_2.keyId]);
    await right.put(version(999));
    await eventually('right refuses', async () => (await right.state()) === 'TRUST_STORE_OUTDATED');
    await right.put(rotated);
    assert.equal(await right.state(), 7);
  }));

test('a changed file that cannot be compared with the mark is not judged: whoever asks must ask again', async () => {
  let isAway = false;
  const failing = { get: () => Promise.reject(new OperationalError('KV_FAILED', 'the bus is away')) };
  const reached = () => (isAway ? failing : bucket) as KvBucket;
  const near = new TrustStoreMarks(bucket);
  const marks = {
    read: () => new TrustStoreMarks(reached()).read(),
    advance: (signed: SignedTrustStore) => near.advance(signed),
  };
  await bucket.remove('highest');
  const machine = new Machine('cut off');
  await machine.put(version(7));
  await machine.start(marks as unknown as TrustStoreMarks);
  isAway = true;
  await machine.put(version(8));
  await assert.rejects(machine.state(), { code: 'KV_FAILED' });
  assert.equal(machine.keeper?.latest.store?.version, 7);
  isAway = false;
  assert.equal(await machine.state(), 8);
  await machine.stop();
});
