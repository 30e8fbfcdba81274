import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isJobId } from '../platform/topology.ts';
import { uuidV7 } from './ids.ts';

describe('UUIDv7', () => {
  it('is the example of RFC 9562', () => {
    const random = Buffer.from('0cc318c4dc0c0c07398f', 'hex');
    assert.equal(uuidV7(0x017f22e279b0, random), '017f22e2-79b0-7cc3-98c4-dc0c0c07398f');
  });

  it('is a job id for every pattern of random bits', () => {
    for (const byte of [0x00, 0x3f, 0x40, 0x7f, 0x80, 0xff])
      assert.ok(isJobId(uuidV7(Date.now(), new Uint8Array(10).fill(byte))));
  });

  it('sorts by time', () => {
    const ids = [1, 2, 1000, 2 ** 40, 2 ** 47].map((ms) => uuidV7(ms));
    assert.deepEqual(ids.toSorted(), ids);
  });

  it('does not repeat', () => {
    assert.equal(new Set(Array.from({ length: 1000 }, () => uuidV7(0))).size, 1000);
  });
});
