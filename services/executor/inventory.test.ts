import assert from 'node:assert/strict';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { findGpus } from './gpu-devices.ts';
import { findInterpreters } from './interpreters.ts';
import { servedRoutes } from './inventory.ts';

let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sandbus-inventory-'));
});
after(() => rm(folder, { recursive: true }));

async function place(path: string, content = ''): Promise<string> {
  const file = join(folder, path);
  await mkdir(join(file, '..'), { recursive: true });
  await writeFile(file, content);
  return file;
}

const none = { python: null, ruby: null, bash: null, node: null };

describe('interpreters', () => {
  test('Node is the one that runs us', async () => {
    const found = await findInterpreters({ ...none });
    const node = found.find((one) => one.ok && one.interpreter.runtime === 'node');
    assert.ok(node?.ok);
    assert.deepEqual([node.interpreter.path, node.interpreter.version], [process.execPath, process.version]);
  });

  const cases: [what: string, files: string[], bind: string][] = [
    ['an installation is shown as a whole', ['opt/python/bin/python3', 'opt/python/lib/x'], 'opt/python'],
    ['a program without a library is shown alone', ['alone/bin/python3'], 'alone/bin/python3'],
    [
      'a folder that is no prefix is not shown',
      ['odd/programs/python3', 'odd/lib/x'],
      'odd/programs/python3',
    ],
  ];
  for (const [what, files, bind] of cases)
    test(what, async () => {
      for (const file of files) await place(file, '#!/bin/sh\necho Python 3.99\n');
      const python = join(folder, files[0] ?? '');
      await chmod(python, 0o755);
      const [found] = (await findInterpreters({ ...none, python })).filter((one) => one.ok);
      assert.deepEqual(found?.ok && { ...found.interpreter }, {
        runtime: 'python',
        path: python,
        version: 'Python 3.99',
        bind: join(folder, bind),
      });
    });

  test('a path that is no program is said, and only that runtime is missing', async () => {
    const found = await findInterpreters({ ...none, ruby: join(folder, 'absent') });
    const ruby = found.find((one) => !one.ok && one.runtime === 'ruby');
    assert.match(ruby?.ok === false ? ruby.fault : '', /absent/);
    assert.ok(found.some((one) => one.ok && one.interpreter.runtime === 'bash'));
  });
});

describe('routes', () => {
  const gpu = { devices: [], binds: [], env: {}, source: 'test' };
  const names = (runtimes: ('python' | 'bash')[], withGpu: boolean) =>
    servedRoutes(new Set(runtimes), withGpu ? gpu : null).map(
      (route) => `${route.runtime}.${route.deviceClass}`,
    );
  test('native needs no interpreter', () => assert.deepEqual(names([], false), ['native.cpu']));
  test('gpu routes only with a GPU', () => {
    assert.deepEqual(names(['python'], false), ['native.cpu', 'python.cpu']);
    assert.deepEqual(names(['bash'], true), ['native.cpu', 'native.gpu', 'bash.cpu', 'bash.gpu']);
  });
});

describe('GPUs', () => {
  const search = (name: string) =>
    findGpus({ specFolders: [join(folder, name, 'cdi')], devFolder: join(folder, name, 'dev') });
  const node = (path: string) => ({ path, hostPath: path, permissions: 'rw' });
  const spec = {
    cdiVersion: '0.6.0',
    kind: 'nvidia.com/gpu',
    devices: [
      { name: '0', containerEdits: { deviceNodes: [node('/dev/nvidia0')] } },
      { name: 'all', containerEdits: { deviceNodes: [node('/dev/nvidia0'), node('/dev/nvidia1')] } },
    ],
    containerEdits: {
      env: ['NVIDIA_VISIBLE_DEVICES=void'],
      deviceNodes: [{ path: '/dev/nvidiactl' }],
      mounts: [{ hostPath: '/usr/lib/x.so', containerPath: '/usr/lib/x.so', options: ['ro'] }],
      hooks: [{ hookName: 'createContainer', path: '/bin/true' }],
    },
  };

  test('none', async () => assert.deepEqual(await search('empty'), { access: null, warnings: [] }));

  test('a CDI specification says it all', async () => {
    await place('cdi-host/cdi/nvidia.json', JSON.stringify(spec));
    await place('cdi-host/dev/nvidia7');
    const { access, warnings } = await search('cdi-host');
    assert.deepEqual(warnings, []);
    assert.deepEqual(access?.devices.map(({ path }) => path).sort(), [
      '/dev/nvidia0',
      '/dev/nvidia1',
      '/dev/nvidiactl',
    ]);
    assert.deepEqual(access?.binds, [{ source: '/usr/lib/x.so', target: '/usr/lib/x.so' }]);
    assert.deepEqual(access?.env, { NVIDIA_VISIBLE_DEVICES: 'void' });
  });

  test('without one, the nodes that are there; companions alone are no GPU', async () => {
    for (const name of [
      'nvidia0',
      'nvidiactl',
      'nvidia-uvm',
      'nvidia-caps/nvidia-cap1',
      'dri/renderD128',
      'dri/card0',
      'sda',
    ])
      await place(`nodes/dev/${name}`);
    const { access } = await search('nodes');
    const expected = ['dri/renderD128', 'nvidia-caps/nvidia-cap1', 'nvidia-uvm', 'nvidia0', 'nvidiactl'];
    assert.deepEqual(
      access?.devices.map(({ path }) => path),
      expected.map((name) => join(folder, 'nodes/dev', name)),
    );
    await place('companions/dev/nvidiactl');
    assert.equal((await search('companions')).access, null);
  });

  test('what cannot be read is said, not guessed', async () => {
    await place('odd/cdi/a.json', '{');
    await place('odd/cdi/b.yaml', '');
    await place('odd/cdi/c.json', JSON.stringify({ ...spec, kind: 'vendor.com/nic' }));
    const { access, warnings } = await search('odd');
    assert.equal(access, null);
    assert.deepEqual(
      warnings.map((text) => /no CDI|only JSON|is not a GPU/.exec(text)?.[0]),
      ['no CDI', 'only JSON', 'is not a GPU'],
    );
  });
});
