import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtemp, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { UsageError } from '../platform/errors.ts';
import { inlineBytes, mostUploadBytes } from '../platform/topology.ts';
import type { ContentInput } from './content.ts';
import { openContent } from './content.ts';

let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sandbus-content-'));
  await writeFile(join(folder, 'huge'), '');
  // A hole: it has no blocks on the disk.
  await truncate(join(folder, 'huge'), mostUploadBytes + 1);
});
after(() => rm(folder, { recursive: true, force: true }));

const piece = Buffer.alloc(64 * 1024, 'x');
async function* pieces(count: number, end: () => void = () => undefined): AsyncGenerator<Uint8Array, void> {
  try {
    for (let at = 0; at < count; at++) yield piece;
  } finally {
    end();
  }
}

describe('content', () => {
  const most = 2 * inlineBytes;
  const whole = most / piece.length;

  it('may have exactly the most, and is read back from where a long stream is kept', async () => {
    const source = await openContent(pieces(whole), 'standard input', most);
    try {
      assert.equal(source.size, most);
      assert.equal(source.sha256, createHash('sha256').update(Buffer.alloc(most, 'x')).digest('hex'));
      assert.equal((await source.read(most - 10, 10)).toString(), 'xxxxxxxxxx');
    } finally {
      await source.close();
    }
  });

  const tooLarge: readonly (readonly [name: string, input: () => ContentInput, message: RegExp])[] = [
    [
      'a stream without end',
      () => pieces(Number.POSITIVE_INFINITY),
      /^standard input is too large: .* 1048576/,
    ],
    ['bytes', () => Buffer.alloc(most + 1), /^standard input is too large/],
    [
      'a file',
      () => ({ path: join(folder, 'huge') }),
      /^\/.*\/huge is too large: .* 1048576 bytes \(1 MiB\)$/,
    ],
  ];
  for (const [name, input, message] of tooLarge)
    it(`${name} that is too large is refused by its name`, () =>
      assert.rejects(openContent(input(), 'standard input', most), (error) => refusedWith(error, message)));

  it('a stream that is too large is not read any further', async () => {
    let ended = false;
    const stream = pieces(Number.POSITIVE_INFINITY, () => {
      ended = true;
    });
    await assert.rejects(openContent(stream, 'standard input', most));
    assert.ok(ended);
  });

  it('may have 256 MiB unless said otherwise: as much as a verifier takes', () =>
    assert.rejects(openContent({ path: join(folder, 'huge') }), (error) =>
      refusedWith(error, /\(256 MiB\)$/),
    ));

  it('a long stream that cannot be kept says where, and that TMPDIR chooses it', async (t) => {
    const nowhere = join(folder, 'nowhere');
    const { TMPDIR } = process.env;
    t.after(() => {
      if (TMPDIR === undefined) delete process.env.TMPDIR;
      else process.env.TMPDIR = TMPDIR;
    });
    process.env.TMPDIR = nowhere;
    await assert.rejects(openContent(pieces(whole), 'standard input'), (error) =>
      refusedWith(
        error,
        /^cannot keep standard input in \/.*\/nowhere .*: there is no such .*TMPDIR names another/,
      ),
    );
  });
});

const refusedWith = (error: unknown, message: RegExp): boolean =>
  error instanceof UsageError && message.test(error.message);
