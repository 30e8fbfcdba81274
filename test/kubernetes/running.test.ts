/** What a pod would have, without a cluster: the server by the rendered configuration, files mounted as a kubelet does it, a real service. */
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, describe, test } from 'node:test';
import { installation } from '../../services/platform/config.ts';
import { findNatsServer } from '../../services/platform/nats-server.ts';
import type { Child } from '../../services/platform/process.ts';
import { readAll, runChild, startChild, stopChild } from '../../services/platform/process.ts';
import { freePorts } from '../free-ports.ts';
import { eventually, testedServer } from '../with-nats.ts';
import { mountFiles } from './mounted.ts';
import type { Rendered } from './rendered.ts';
import { findKustomize, generated, renderBase, withoutKustomize } from './rendered.ts';
import type { State } from './state.ts';
import { contentsOf, makeState, withoutSecrets } from './state.ts';

const kustomize = findKustomize();
const skip = withoutKustomize || withoutSecrets;

describe('what deploy/kubernetes mounts', { skip }, () => {
  let rendered: Rendered;
  let state: State;
  let ports: readonly number[];
  let root: string;
  const children: Child[] = [];
  const service = 'verifier';
  const at = (path: string) => join(root, path);

  /** Everything anew from the state folder, as `secrets | kubectl apply` and a kubelet would bring it. */
  const mount = async () => {
    const { code, stdout, stderr } = await state.secrets();
    assert.equal(code, 0, stderr);
    const contents = contentsOf(stdout);
    const moved = (text: string) =>
      text
        .replaceAll('/etc/nats', at('etc/nats'))
        .replace('/data', at('data'))
        .replace('0.0.0.0:4222', `127.0.0.1:${ports[0]}`)
        .replace('0.0.0.0:8222', `127.0.0.1:${ports[1]}`);
    const configuration = Object.entries(generated(rendered, 'sandbus', 'nats'));
    mountFiles(at('etc/nats'), {
      ...Object.fromEntries(configuration.map(([name, text]) => [name, moved(text)])),
      ...contents.get('Secret sandbus/nats'),
    });
    mountFiles(at('etc/sandbus'), contents.get('ConfigMap sandbus/public') ?? {});
    for (const name of [service, 'topology'])
      mountFiles(at(`${name}/run/sandbus`), contents.get(`Secret sandbus/${name}`) ?? {});
  };

  const environmentOf = (name: string) => ({
    PATH: '/usr/bin:/bin',
    HOME: root,
    ...Object.fromEntries(
      Object.entries(generated(rendered, 'sandbus', 'services')).map(([variable, value]) => [
        variable,
        value
          .replace('/etc/sandbus', at('etc/sandbus'))
          .replace('/run/sandbus', at(`${name}/run/sandbus`))
          .replace('/var/lib/sandbus', at(`${name}/state`)),
      ]),
    ),
    SANDBUS_NATS_URL: `tls://localhost:${ports[0]}`,
    SANDBUS_HEALTH_ADDRESS: `127.0.0.1:${ports[2]}`,
  });
  const script = join(installation.root, 'services/cli/sandbus');
  const start = async (program: string, args: readonly string[], env: Record<string, string>) => {
    const child = await startChild(program, args, {
      ...{ env, stdio: ['ignore', 'ignore', 'pipe'] as const },
      diesWithParent: true,
    });
    children.push(child);
    return child;
  };
  const answer = async (path: string) =>
    (await fetch(`http://127.0.0.1:${ports[2]}${path}`).catch(() => null))?.status;

  before(async () => {
    assert.ok(kustomize !== null);
    [rendered, state, ports] = await Promise.all([renderBase(kustomize), makeState(), freePorts(3)]);
    root = join(state.folder, '..', 'root');
    mkdirSync(root);
    await mount();
    const config = at('etc/nats/nats-tls.conf');
    const server = await start(testedServer().program ?? findNatsServer(), ['--config', config], {});
    const said = readAll(server.stderr);
    const isThere = async () =>
      (await fetch(`http://127.0.0.1:${ports[1]}/healthz`).catch(() => null))?.ok === true;
    await eventually('the server is healthy', isThere).catch(async (error) => {
      await stopChild(server, 1000);
      throw new Error(`${await said}`, { cause: error });
    });
  });
  after(async () => {
    for (const child of children.reverse()) await stopChild(child, 5000);
    await state?.remove();
  });

  test('lets a service in over TLS, and a new trust store reaches it while it runs', async () => {
    const topology = await runChild('/bin/sh', [script, 'topology'], environmentOf('topology'));
    assert.equal(topology.code, 0, topology.stderr.toString());

    const verifier = await start('/bin/sh', [script, 'service', service], environmentOf(service));
    const lines: string[] = [];
    createInterface({ input: verifier.stderr ?? assert.fail() }).on('line', (line) => lines.push(line));
    const inForce = (version: number) => () =>
      lines.some((line) => line.includes('trust store in force') && line.includes(`"version":${version}`));
    await eventually('the store is in force', inForce(1));
    await eventually('the probes are answered', async () => (await answer('/readyz')) === 200);
    assert.equal(await answer('/livez'), 200);

    await state.sandbus('keygen', '--out', join(root, 'me.pem'));
    await state.sandbus('trust', 'add', join(root, 'me.pem.pub'), '--owner', 'me');
    await mount();
    await eventually('the new store is in force', inForce(2));
  });
});
