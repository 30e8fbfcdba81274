/** Files that change under a running service, by each way in which they are replaced. */
import assert from 'node:assert/strict';
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { mountFiles } from '../../test/kubernetes/mounted.ts';
import { createLogger } from './log.ts';
import type { Parsed } from './watched-file.ts';
import { WatchedFile } from './watched-file.ts';

/** What makes a new version of `folder`/text. */
const ways: [how: string, put: (folder: string, text: string) => void][] = [
  ['written over', (folder, text) => writeFileSync(join(folder, 'text'), text)],
  [
    'replaced by another one that is renamed',
    (folder, text) => {
      writeFileSync(join(folder, 'new'), text);
      renameSync(join(folder, 'new'), join(folder, 'text'));
    },
  ],
  [
    'in a folder of Kubernetes, whose link ..data is replaced',
    (folder, text) => mountFiles(folder, { text }),
  ],
];

const parse = (bytes: Uint8Array): Parsed<string> => {
  const value = Buffer.from(bytes).toString('utf8');
  return value.startsWith('good') ? { ok: true, value } : { ok: false, detail: 'not good' };
};

for (const [how, put] of ways)
  test(`a file that is ${how} is read again, and a damaged one is not taken`, () => {
    const folder = mkdtempSync(join(tmpdir(), 'sandbus-watched-'));
    try {
      const file = new WatchedFile(join(folder, 'text'), parse, createLogger('test', 'silent'));
      const seen = ['', 'good one', 'good two', 'damaged', 'good six'].map((text) => {
        if (text !== '') put(folder, text);
        return file.current();
      });
      assert.deepEqual(seen, [null, 'good one', 'good two', 'good two', 'good six']);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
