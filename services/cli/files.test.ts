import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { openContent } from '../client/content.ts';
import { runChild } from '../platform/process.ts';
import { sandbusProgram } from './cli-process.ts';
import { readBytes, readIfThere, streamBytes, withLock } from './files.ts';

let folder: string;
const at = (name: string) => join(folder, name);
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sandbus-files-'));
  await writeFile(at('small'), 'small');
  await writeFile(at('huge'), '');
  await truncate(at('huge'), 5 * 1024 ** 3);
  await mkdir(at('folder'));
  await runChild('/usr/bin/mkfifo', [at('fifo')], {});
});
const inFolder = () => ({ PATH: '/usr/local/bin:/usr/bin:/bin', SANDBUS_STATE_DIR: at('state') });
after(() => rm(folder, { recursive: true }));

async function streamed(path: string): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of streamBytes(path, 'plugin')) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}
const sent = async (path: string) => (await openContent({ path })).close();

describe('a file that is none ends the command at once, with its name and what is wrong', () => {
  const cases: readonly [read: (path: string) => Promise<unknown>, file: string, fault: RegExp][] = [
    [streamed, 'fifo', /cannot read plugin .*fifo: it is not a regular file/],
    [streamed, '/dev/zero', /cannot read plugin \/dev\/zero: it is not a regular file/],
    [streamed, 'folder', /cannot read plugin .*folder: it is a folder/],
    [streamed, 'absent', /cannot read plugin .*absent: there is no such file/],
    [sent, 'fifo', /cannot read .*fifo: it is not a regular file/],
    [sent, '/dev/zero', /cannot read \/dev\/zero: it is not a regular file/],
    [sent, 'folder', /cannot read .*folder: it is not a regular file/],
    [
      (path) => readBytes(path, 'envelope'),
      '/dev/zero',
      /cannot read envelope \/dev\/zero: it has more than/,
    ],
    [(path) => readBytes(path, 'envelope'), 'huge', /cannot read envelope .*huge: it has more than/],
    [(path) => readBytes(path, 'envelope'), 'folder', /cannot read envelope .*folder: it is a folder/],
    [(path) => readIfThere(path, 'tokens file'), 'huge', /cannot read tokens file .*huge: it has more than/],
  ];
  for (const [read, file, fault] of cases)
    it(`${fault}`, { timeout: 10_000 }, () =>
      assert.rejects(read(file.startsWith('/') ? file : at(file)), fault),
    );
});

describe('a file', () => {
  it('is read as a whole', async () =>
    assert.equal(Buffer.from(await readBytes(at('small'), 'key')).toString(), 'small'));
  it('is read piece by piece', async () => assert.equal(await streamed(at('small')), 'small'));
  it('that is not there is null where that is allowed', async () =>
    assert.equal(await readIfThere(at('absent'), 'key'), null));
});

describe('a lock', () => {
  it('that another holds for too long is said', () =>
    assert.rejects(
      withLock(at('small'), () => withLock(at('small'), async () => undefined, 0)),
      /small is being changed by another process.*try again/,
    ));
  it('is free again after work that failed, and is in no listing', async () => {
    const failing = async () => assert.fail('the work');
    await assert.rejects(withLock(at('small'), failing), /the work/);
    assert.equal(await withLock(at('small'), async () => 'done', 0), 'done');
    const { stdout } = await runChild('/bin/ls', [folder], {});
    assert.doesNotMatch(stdout.toString(), /lock/);
  });
});

describe('of commands that change one file at once none loses what the others did', () => {
  const names = ['verifier', 'router', 'audit'];
  const cases: readonly [change: string, list: string, inList: RegExp][] = [
    ['tenant add NAME', 'tenant list', /^(verifier|router|audit) +U/gm],
    ['query-token add NAME --operator', 'query-token list', /^(verifier|router|audit) /gm],
    ['service-keys rotate NAME', 'service-keys list', /^(verifier|router|audit) +\w+ \w+$/gm],
  ];
  before(() => runChild(sandbusProgram, ['access', 'init'], inFolder()));
  for (const [change, list, inList] of cases)
    it(change, async () => {
      const changes = names.map((name) => change.replace('NAME', name).split(' '));
      const ends = await Promise.all(changes.map((words) => runChild(sandbusProgram, words, inFolder())));
      for (const { code, stderr } of ends) assert.equal(code, 0, stderr.toString());
      const { stdout } = await runChild(sandbusProgram, list.split(' '), inFolder());
      assert.equal(stdout.toString().match(inList)?.length, names.length, stdout.toString());
    });
});

it('a full disk is said, and nothing half written stays', async () => {
  const script = `mount -t tmpfs -o size=4k none "$1"; head -c 4096 /dev/zero >"$1/full"
    "$2" keygen --out "$1/me.pem" 2>&1; echo "code $?"; ls "$1"`;
  const args = ['-rm', 'sh', '-c', script, 'sh', at('folder'), sandbusProgram];
  const { stdout } = await runChild('/usr/bin/unshare', args, {
    PATH: '/usr/local/bin:/usr/bin:/bin:/sbin:/usr/sbin',
  });
  const [said, ...rest] = stdout.toString().trim().split('\n');
  assert.match(said ?? '', /^sandbus: cannot write .*me\.pem: there is no space left on its disk$/);
  assert.deepEqual(rest, ['code 2', 'full']);
});
