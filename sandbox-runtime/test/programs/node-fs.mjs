// Files: synchronous, by callbacks in the thread pool, by streams; links, modes, times, watching, walking, big copies.
import { createHash, randomBytes } from 'node:crypto';
import { createReadStream, createWriteStream, mkdirSync, watch } from 'node:fs';
import * as fs from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createGzip } from 'node:zlib';

const digest = (bytes) => createHash('sha256').update(bytes).digest('hex');
mkdirSync('deep/er', { recursive: true });
const changed = new Promise((resolve) => watch('deep', (_, name) => resolve(name)).unref());
const bytes = randomBytes(1 << 20);
await fs.writeFile('deep/plain', bytes, { mode: 0o600 });
await pipeline(createReadStream('deep/plain'), createGzip(), createWriteStream('deep/packed'));
await pipeline(createReadStream('deep/packed'), createGunzip(), createWriteStream('deep/again'));
await Promise.all([
  fs.copyFile('deep/again', 'deep/er/copy'),
  fs.symlink('plain', 'deep/soft'),
  fs.link('deep/plain', 'deep/hard'),
]);
await fs.rename('deep/er/copy', 'deep/er/moved');
await fs.chmod('deep/er/moved', 0o444);
await fs.utimes('deep/er/moved', 1, 2);
const { mode, mtimeMs } = await fs.stat('deep/er/moved');
const same = digest(await fs.readFile('deep/er/moved')) === digest(bytes);
const temporary = await fs.mkdtemp('/tmp/x-');
await fs.cp('deep', temporary, { recursive: true });
const names = await fs.readdir(temporary, { recursive: true });
await fs.rm('deep', { recursive: true });
console.log(
  same,
  mode.toString(8),
  mtimeMs,
  names.sort().join(),
  await fs.access('deep').catch((error) => error.code),
  await changed,
);
