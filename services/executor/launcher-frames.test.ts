import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ClientFrame, LauncherFrame } from './launcher-frames.ts';
import { encodeFrame, FrameFault, FrameReader } from './launcher-frames.ts';

const hex = (text: string) => Buffer.from(text.replaceAll(' ', ''), 'hex');
const readAll = (reader: FrameReader, piece: Buffer) => [...reader.push(piece)];

describe('what goes to the launcher, byte by byte', () => {
  const cases: [frame: ClientFrame, bytes: string][] = [
    [
      { type: 'start', job: 1, words: ['--wall', '5', '--', 'é', ''] },
      '10000000 01 000000 0100000000000000 2d2d77616c6c00 3500 2d2d00 c3a900 00',
    ],
    [
      { type: 'credit', job: 258, stream: 'stdout', bytes: 65536 },
      '08000000 03 000000 0201000000000000 01000000 00000100',
    ],
    [
      { type: 'credit', job: 2, stream: 'stderr', bytes: 1 },
      '08000000 03 000000 0200000000000000 02000000 01000000',
    ],
    [{ type: 'cancel', job: 2 ** 40 + 3 }, '00000000 04 000000 0300000000010000'],
    [{ type: 'discard', job: 7 }, '00000000 05 000000 0700000000000000'],
  ];
  for (const [frame, bytes] of cases)
    test(`${frame.type} ${frame.job}`, () => assert.deepEqual(encodeFrame(frame), hex(bytes)));
});

const conversation: [frame: LauncherFrame, bytes: string][] = [
  [{ type: 'hello', version: 1, mostJobs: 64 }, '08000000 10 000000 0000000000000000 01000000 40000000'],
  [{ type: 'stdout', job: 1, bytes: Buffer.from('ab\n') }, '03000000 11 000000 0100000000000000 61620a'],
  [{ type: 'stderr', job: 2 ** 32, bytes: Buffer.from([0xff]) }, '01000000 12 000000 0000000001000000 ff'],
  [{ type: 'inputCredit', job: 1, bytes: 4096 }, '04000000 13 000000 0100000000000000 00100000'],
  [{ type: 'result', job: 1, text: '{"é":1}' }, '08000000 14 000000 0100000000000000 7b22c3a9223a317d'],
  [{ type: 'error', text: '{}' }, '02000000 15 000000 0000000000000000 7b7d'],
];

describe('what comes from the launcher', () => {
  for (const [frame, bytes] of conversation)
    test(frame.type, () => assert.deepEqual(readAll(new FrameReader(), hex(bytes)), [frame]));

  const stream = Buffer.concat(conversation.map(([, bytes]) => hex(bytes)));
  const frames = conversation.map(([frame]) => frame);
  for (const size of [1, 2, 3, 7, 16, 17, 31, stream.length])
    test(`in pieces of ${size} bytes`, () => {
      const reader = new FrameReader();
      const got: LauncherFrame[] = [];
      for (let at = 0; at < stream.length; at += size)
        got.push(...reader.push(stream.subarray(at, at + size)));
      assert.deepEqual(got, frames);
    });

  test('a large frame in many pieces', () => {
    const text = 'x'.repeat(3_000_000);
    const header = Buffer.alloc(16);
    header.writeUInt32LE(text.length, 0);
    header.writeUInt8(20, 4);
    header.writeUInt8(9, 8);
    const bytes = Buffer.concat([header, Buffer.from(text)]);
    const reader = new FrameReader();
    const got: LauncherFrame[] = [];
    for (let at = 0; at < bytes.length; at += 65_536)
      got.push(...reader.push(bytes.subarray(at, at + 65_536)));
    assert.deepEqual(got, [{ type: 'result', job: 9, text }]);
  });

  const faults: [what: string, bytes: string, message: RegExp][] = [
    ['an unknown type', '00000000 63 000000 0000000000000000', /no frame of type 99/],
    ["a type of the client's", '00000000 01 000000 0100000000000000', /no frame of type 1/],
    ['a byte that is not zero', '08000000 10 000100 0000000000000000', /type 16/],
    ['an output without bytes', '00000000 11 000000 0100000000000000', /stdout has 0 bytes and takes 1 to/],
    ['too large an output', '01000100 11 000000 0100000000000000', /stdout has 65537/],
    ['a result of 4 GiB', 'ffffffff 14 000000 0100000000000000', /result has 4294967295/],
    ['a number beyond what is exact', '02000000 14 000000 ffffffffffffff7f', /about job 9223372036854775807/],
    ['text', Buffer.from('usage: launcher ').toString('hex'), /no frame of type/],
  ];
  for (const [what, bytes, message] of faults)
    test(what, () =>
      assert.throws(
        () => readAll(new FrameReader(), hex(bytes)),
        (error) => error instanceof FrameFault && message.test(error.message),
      ),
    );
});
