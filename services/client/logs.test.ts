import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { JobFinished, LogChunk } from '../platform/codec.ts';
import type { LogItem } from './logs.ts';
import { LogAssembly, logStreams } from './logs.ts';

const chunk = (offset: number, text: string, more: Partial<LogChunk> = {}): LogChunk => ({
  jobId: 'j',
  tenant: 't',
  at: 0,
  attempt: 1,
  stream: 'stdout',
  sequence: 0,
  offset,
  bytes: Buffer.from(text),
  ...more,
});

/** A terminal event as far as its output goes. */
function finished(stdout: { inline: string; keptBytes?: number }): JobFinished {
  const keptBytes = stdout.keptBytes ?? stdout.inline.length;
  const of = (inline: string, kept: number) => ({
    inline: Buffer.from(inline),
    keptBytes: kept,
    totalBytes: kept,
  });
  return { attempt: 1, stdout: of(stdout.inline, keptBytes), stderr: of('', 0) } as unknown as JobFinished;
}

/** `text@offset` or `gap@offset+bytes`, with `!` for standard error. */
const shown = (item: LogItem): string => {
  const what = item.kind === 'output' ? Buffer.from(item.bytes).toString() : `gap+${item.missingBytes}`;
  return `${what}@${item.offset}${item.stream === 'stderr' ? '!' : ''}`;
};

const cases: readonly (readonly [name: string, chunks: readonly LogChunk[], items: readonly string[]])[] = [
  ['in order', [chunk(0, 'ab'), chunk(2, 'cd')], ['ab@0', 'cd@2']],
  ['a chunk twice', [chunk(0, 'ab'), chunk(0, 'ab'), chunk(2, 'c')], ['ab@0', 'c@2']],
  ['chunks that overlap', [chunk(0, 'abc'), chunk(1, 'bcde')], ['abc@0', 'de@3']],
  ['a chunk that is gone', [chunk(0, 'ab'), chunk(5, 'f')], ['ab@0', 'gap+3@2', 'f@5']],
  ['the beginning is gone', [chunk(4, 'e')], ['gap+4@0', 'e@4']],
  [
    'two streams',
    [chunk(0, 'a'), chunk(0, 'x', { stream: 'stderr' }), chunk(1, 'b')],
    ['a@0', 'x@0!', 'b@1'],
  ],
  ['a second attempt begins anew', [chunk(0, 'ab'), chunk(0, 'ab', { attempt: 2 })], ['ab@0', 'ab@0']],
  ['an empty chunk', [chunk(0, '')], []],
];

describe('output is put together exactly', () => {
  for (const [name, chunks, items] of cases)
    it(name, () => {
      const assembly = new LogAssembly();
      assert.deepEqual(chunks.flatMap((one) => assembly.add(one)).map(shown), items);
    });

  it('what was not stored comes from the terminal event', () => {
    const assembly = new LogAssembly();
    const end = finished({ inline: 'abcdef' });
    assert.deepEqual(assembly.add(chunk(0, 'ab')).map(shown), ['ab@0']);
    assert.equal(assembly.isComplete(end), false);
    assert.deepEqual(logStreams.flatMap((stream) => assembly.addInline(end, stream)).map(shown), ['cdef@2']);
    assert.equal(assembly.isComplete(end), true);
    assert.deepEqual(assembly.missing(end), []);
  });

  it('a hole before a chunk is filled from the terminal event, up to that chunk', () => {
    const assembly = new LogAssembly();
    const end = finished({ inline: 'abcdef' });
    assert.deepEqual(assembly.addInline(end, 'stdout', 4).map(shown), ['abcd@0']);
    assert.deepEqual(assembly.add(chunk(4, 'ef')).map(shown), ['ef@4']);
  });

  it('what nobody has is missing, and is said to be', () => {
    const assembly = new LogAssembly();
    const end = finished({ inline: 'abc', keptBytes: 10 });
    for (const stream of logStreams) assembly.addInline(end, stream);
    assert.equal(assembly.isComplete(end), false);
    assert.deepEqual(assembly.missing(end).map(shown), ['gap+7@3']);
  });
});
