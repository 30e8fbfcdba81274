import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { LogChunk } from '../../schemas/generated/events.ts';
import { systemClock } from '../platform/clock.ts';
import { createLogger } from '../platform/log.ts';
import { LogStreams } from './log-stream.ts';

const job = { tenant: 'acme', jobId: 'j' };
const open = (publish: (chunk: LogChunk) => Promise<void>) =>
  new LogStreams({ job, attempt: 1, clock: systemClock, log: createLogger('test', 'fatal'), publish });
const kibibyte = 1024;

describe('log chunks', () => {
  const cases: [what: string, writes: number[], expected: number[]][] = [
    ['nothing', [], []],
    ['small writes are gathered', [3, 4, 5], [12]],
    ['a write of exactly one chunk', [64 * kibibyte], [64 * kibibyte]],
    ['a large write is cut', [150 * kibibyte], [64 * kibibyte, 64 * kibibyte, 22 * kibibyte]],
    ['no write is torn when it need not be', [10, 64 * kibibyte - 1], [10, 64 * kibibyte - 1]],
  ];
  for (const [what, writes, expected] of cases)
    test(what, async () => {
      const chunks: LogChunk[] = [];
      const logs = open(async (chunk) => void chunks.push(chunk));
      for (const size of writes) await logs.write('stdout', Buffer.alloc(size, 'x'));
      await logs.close();
      assert.deepEqual(
        chunks.map(({ bytes }) => bytes.length),
        expected,
      );
      let offset = 0;
      for (const [index, chunk] of chunks.entries()) {
        assert.deepEqual([chunk.sequence, chunk.offset], [index, offset]);
        offset += chunk.bytes.length;
      }
    });

  test('the streams are apart', async () => {
    const chunks: LogChunk[] = [];
    const logs = open(async (chunk) => void chunks.push(chunk));
    await logs.write('stdout', Buffer.from('a'));
    await logs.write('stderr', Buffer.from('b'));
    await logs.close();
    assert.deepEqual(
      chunks.map(({ stream, sequence, offset, bytes }) => [stream, sequence, offset, String(bytes)]),
      [
        ['stdout', 0, 0, 'a'],
        ['stderr', 0, 0, 'b'],
      ],
    );
  });

  test('a write is sent after a moment, without another one', async () => {
    const sent = Promise.withResolvers<LogChunk>();
    const logs = open(async (chunk) => sent.resolve(chunk));
    await logs.write('stdout', Buffer.from('prompt'));
    assert.equal(String((await sent.promise).bytes), 'prompt');
    await logs.close();
  });
});

describe('a bus that does not take log chunks', () => {
  const endless = async (logs: LogStreams) => {
    for (let i = 0; i < 100; i++) await logs.write('stdout', Buffer.alloc(64 * kibibyte));
    await logs.close();
  };

  test('slow: the writer waits, so that little is in memory', async () => {
    let underWay = 0;
    let most = 0;
    const logs = open(async () => {
      most = Math.max(most, ++underWay);
      await new Promise((resolve) => setTimeout(resolve, 5));
      underWay -= 1;
    });
    await endless(logs);
    assert.ok(most <= 9, `${most} chunks were under way`);
  });

  test('refusing: given up at once, the writer goes on', async () => {
    let tried = 0;
    await endless(open(() => Promise.reject(new Error(`no ${++tried}`))));
    assert.ok(tried < 10, `${tried} tries`);
  });

  test('silent: given up after a while, the writer goes on', async () => {
    let tried = 0;
    await endless(
      open(() => {
        tried += 1;
        return new Promise(() => undefined);
      }),
    );
    assert.ok(tried < 10, `${tried} tries`);
  });
});
