import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import type { TestNats } from '../../test/with-nats.ts';
import { startTestNats } from '../../test/with-nats.ts';
import { OperationalError } from '../platform/errors.ts';
import type { Reply, Request } from '../platform/nats/bus.ts';
import { Bus } from '../platform/nats/bus.ts';
import { chunkBytes, headerNames, requestFilters } from '../platform/topology.ts';
import { openContent } from './content.ts';
import { uploadContent } from './upload.ts';

let nats: TestNats;
let client: Bus;
let receiver: Receiver;
before(async () => {
  nats = await startTestNats();
  client = await Bus.connect({ url: nats.url, name: 'client', credentials: null });
  nats.bus.serve(requestFilters.upload, 'verifier', async (request) => receiver.answer(request));
});
after(async () => {
  await client.close();
  await nats.stop();
});

const error = (code: string): Reply => ({
  data: Buffer.from('a sentence'),
  headers: { [headerNames.error]: code },
});

/** Takes chunks as the verifier does; `misbehave` may answer in its place, before or after the chunk was taken. */
class Receiver {
  readonly taken: Buffer[] = [];
  readonly offsets: number[] = [];
  readonly #misbehave: (requests: number, take: () => Reply) => Reply;

  constructor(misbehave: (requests: number, take: () => Reply) => Reply = (_, take) => take()) {
    this.#misbehave = misbehave;
  }

  answer(request: Request): Reply {
    const offset = Number(request.headers[headerNames.offset]);
    this.offsets.push(request.data.length === 0 ? -1 : offset);
    return this.#misbehave(this.offsets.length, () => this.#take(offset, request));
  }

  #take(offset: number, request: Request): Reply {
    if (offset === this.size && request.data.length > 0) this.taken.push(Buffer.from(request.data));
    const complete = this.size === Number(request.headers[headerNames.size]);
    return { data: Buffer.from(JSON.stringify({ offset: this.size, complete })), headers: {} };
  }

  get size(): number {
    return this.taken.reduce((sum, bytes) => sum + bytes.length, 0);
  }
}

const bytes = randomBytes(2 * chunkBytes + 100);

async function upload(): Promise<number[]> {
  const progress: number[] = [];
  const source = await openContent(bytes);
  await uploadContent(client, 'default', source, ({ sentBytes }) => progress.push(sentBytes));
  return progress;
}

describe('an upload', () => {
  it('goes in chunks, and says how far it is', async () => {
    receiver = new Receiver();
    assert.deepEqual(await upload(), [0, chunkBytes, 2 * chunkBytes, bytes.length]);
    assert.ok(Buffer.concat(receiver.taken).equals(bytes));
    assert.deepEqual(receiver.offsets, [-1, 0, chunkBytes, 2 * chunkBytes]);
  });

  it('sends nothing that is there already', async () => {
    receiver = new Receiver();
    receiver.taken.push(bytes);
    await upload();
    assert.deepEqual(receiver.offsets, [-1]);
  });

  it('goes on where an earlier one broke off', async () => {
    receiver = new Receiver();
    receiver.taken.push(bytes.subarray(0, chunkBytes));
    await upload();
    assert.deepEqual(receiver.offsets, [-1, chunkBytes, 2 * chunkBytes]);
    assert.ok(Buffer.concat(receiver.taken).equals(bytes));
  });

  it('asks again after a fault, whether the chunk arrived or not', async () => {
    receiver = new Receiver((requests, take) => {
      if (requests === 2) return error('UNAVAILABLE');
      const reply = take();
      return requests === 4 ? error('KV_FAILED') : reply;
    });
    await upload();
    assert.ok(Buffer.concat(receiver.taken).equals(bytes));
    assert.deepEqual(receiver.offsets, [-1, 0, -1, 0, -1, chunkBytes, 2 * chunkBytes]);
  });

  for (const code of ['PLUGIN_TOO_LARGE', 'BUS_FULL'])
    it(`is given up at once when it is refused with ${code}`, async () => {
      receiver = new Receiver(() => error(code));
      await assert.rejects(upload(), (fault) => fault instanceof OperationalError && fault.code === code);
      assert.equal(receiver.offsets.length, 1);
    });

  it('is given up after a while when questions are answered and chunks are not taken', async () => {
    receiver = new Receiver((requests, take) => (requests % 2 === 0 ? error('OBJECT_FAILED') : take()));
    receiver.taken.push(bytes.subarray(0, chunkBytes));
    await assert.rejects(
      upload(),
      (fault) => fault instanceof OperationalError && fault.code === 'OBJECT_FAILED',
    );
  });

  it('tells a store that is full from one that fails', async () => {
    const small = await startTestNats({ sizeFactor: 0.02 });
    try {
      const store = await small.bus.objects('plugins');
      await assert.rejects(
        store.put('too-much', [Buffer.alloc(24 * 1024 * 1024)]),
        (fault) => fault instanceof OperationalError && fault.code === 'BUS_FULL',
      );
    } finally {
      await small.stop();
    }
  });
});
