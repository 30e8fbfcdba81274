import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { fileSignedBy, RELOAD_CASES, ROOT, ROOT_2, STORE_CASES } from './attacks/stores.ts';
import { ALICE, expectValue, storeContent, storedKey } from './fixture.ts';
import {
  checkFollows,
  emptyTrustStore,
  encodeTrustStore,
  encodeTrustStoreMark,
  markOf,
  openTrustStore,
  parseTrustStore,
  parseTrustStoreMark,
  readTrustStoreContent,
  readTrustStoreFile,
  reloadTrustStore,
  rotateRoot,
  signTrustStore,
  type TrustStoreContent,
  withExpiry,
  withKey,
  withRevokedDigest,
  withRevokedKey,
} from './index.ts';

describe('a trust store file', () => {
  for (const { name, expected, file, pinned, mark } of STORE_CASES) {
    test(`${name}: ${expected ?? 'accepted'}`, () => {
      const opened = openTrustStore(file, pinned);
      const refusal = opened.ok ? checkFollows(opened.value, mark) : opened;
      assert.equal(refusal?.reason ?? null, expected, refusal?.detail);
    });
  }
});

test('the mark of a store survives being written and read', () => {
  const mark = markOf(expectValue(openTrustStore(fileSignedBy([ROOT, ROOT_2]), ROOT)));
  assert.deepEqual({ ...expectValue(parseTrustStoreMark(encodeTrustStoreMark(mark))) }, mark);
  assert.equal(mark.rootKeyId, ROOT_2.keyId);
  assert.ok(!parseTrustStoreMark(Buffer.from('{"version":1}')).ok);
});

describe('reading the file again', () => {
  for (const { name, bytes, mark, current, version, problem } of RELOAD_CASES) {
    test(name, () => {
      const reload = reloadTrustStore(current, bytes, { pinnedRoot: ROOT, mark });
      assert.equal(reload.inForce?.store.version ?? null, version);
      assert.equal(reload.problem?.reason ?? null, problem, reload.problem?.detail);
    });
  }
});

test('the commands of an operator, from the first store to the second root', () => {
  const until = Date.parse('2027-01-01T00:00:00Z');
  const steps: ((content: TrustStoreContent) => TrustStoreContent)[] = [
    (content) => withKey(content, storedKey(ALICE, 'Alice')),
    (content) => withExpiry(content, Date.parse('2028-01-01T00:00:00Z')),
    (content) => withRevokedKey(withRevokedKey(content, ALICE.keyId), ALICE.keyId),
    (content) => withRevokedDigest(content, 'a'.repeat(64)),
  ];
  let file = signTrustStore(expectValue(encodeTrustStore(emptyTrustStore(until))), ROOT);
  let mark = markOf(expectValue(openTrustStore(file, ROOT)));
  for (const step of steps) {
    const content = expectValue(readTrustStoreContent(expectValue(readTrustStoreFile(file)).store.payload));
    file = signTrustStore(expectValue(encodeTrustStore(step(content))), ROOT);
    const opened = expectValue(openTrustStore(file, ROOT));
    assert.equal(checkFollows(opened, mark), null);
    mark = markOf(opened);
  }
  file = rotateRoot(expectValue(readTrustStoreFile(file)), ROOT, ROOT_2);
  const { store, rootLine } = expectValue(openTrustStore(file, ROOT));
  assert.deepEqual(rootLine, [ROOT.keyId, ROOT_2.keyId]);
  assert.deepEqual([...store.revokedKeys, ...store.revokedDigests], [ALICE.keyId, 'a'.repeat(64)]);
  assert.equal(store.version, 6);
});

test('content that could not be read back is not written', () => {
  const twice = [storedKey(ALICE, 'Alice'), storedKey(ALICE, 'Alice again')];
  assert.ok(!encodeTrustStore(storeContent({ keys: twice })).ok);
  assert.ok(!parseTrustStore(Buffer.from('[]')).ok);
});
