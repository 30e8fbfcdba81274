/** What the manifests of deploy/kubernetes promise, read from what kustomize makes of them. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { parse } from 'yaml';
import { commonShape, installation, loadConfig } from '../../services/platform/config.ts';
import { findPython, runPython } from '../subscribers/python.ts';
import type { Rendered, Workload } from './rendered.ts';
import {
  findKustomize,
  generated,
  parseManifests,
  renderAll,
  renderBase,
  withoutKustomize,
} from './rendered.ts';
import type { State } from './state.ts';
import { contentsOf, makeState, withoutSecrets } from './state.ts';

const python = await findPython();
const kustomize = findKustomize();
const skip = withoutKustomize || withoutSecrets;

/** Whose container has what of its own in /run/sandbus. */
const ownFiles: Readonly<Record<string, readonly string[]>> = {
  verifier: ['event-key.pem', 'nats.nk'],
  router: ['event-key.pem', 'nats.nk'],
  audit: ['event-key.pem', 'ledger-key.pem', 'nats.nk', 'query-tokens.json'],
  topology: ['nats.nk'],
  executor: ['event-key.pem', 'nats.nk'],
  'executor-gpu': ['event-key.pem', 'nats.nk'],
};
const publicFiles = ['ca.crt', 'ledger.pub', 'policy.json', 'root.pub', 'service-keys.json', 'trust.json'];
/** Variables of files, and who reads them; null is everybody. */
const onlyOf: Readonly<Record<string, string>> = {
  SANDBUS_LEDGER_KEY: 'audit',
  SANDBUS_QUERY_TOKENS: 'audit',
};

const isExecutor = ({ name }: Workload): boolean => name.startsWith('executor');
const fail = (what: string): never => assert.fail(what);

describe('deploy/kubernetes', { skip }, () => {
  let base: Rendered;
  let all: Rendered;
  let state: State;
  let secrets: Map<string, Record<string, Buffer>>;
  const workloads = () => all.workloads;
  const ours = () => workloads().filter(({ name }) => name !== 'nats');
  before(async () => {
    assert.ok(kustomize !== null);
    [base, all, state] = await Promise.all([renderBase(kustomize), renderAll(kustomize), makeState()]);
    const { code, stdout, stderr } = await state.secrets();
    assert.equal(code, 0, stderr);
    secrets = contentsOf(stdout);
  });
  after(() => state?.remove());

  test('holds the four services, NATS, and what makes the topology', () => {
    const names = ({ workloads }: Rendered) => workloads.map(({ kind, name }) => `${kind} ${name}`).sort();
    const usual = [
      'DaemonSet executor',
      'Deployment router',
      'Deployment verifier',
      'Job topology',
      'StatefulSet audit',
      'StatefulSet nats',
    ];
    assert.deepEqual(names(base), usual);
    assert.deepEqual(names(all), ['DaemonSet executor', 'DaemonSet executor-gpu', ...usual.slice(1)]);
  });

  test('every container drops all capabilities; executors alone get some, those of docker-compose.yml', () => {
    const compose = parse(readFileSync(join(installation.root, 'docker-compose.yml'), 'utf8'), {
      merge: true,
    });
    for (const { name, container, ...workload } of workloads()) {
      const { capabilities } = container.securityContext;
      assert.deepEqual(capabilities.drop, ['ALL'], name);
      const expected = name.startsWith('executor') ? compose.services.executor.cap_add : [];
      assert.deepEqual(capabilities.add, expected, `${name} ${workload.kind}`);
    }
  });

  test('executors alone are root, unconfined, and in a namespace that allows it', () => {
    for (const workload of workloads()) {
      const { pod, container, namespace, name } = workload;
      const { securityContext: own } = container;
      const seen = {
        nonRoot: pod.securityContext?.runAsNonRoot ?? false,
        seccomp: own.seccompProfile?.type ?? pod.securityContext?.seccompProfile?.type,
        appArmor: own.appArmorProfile?.type,
        mayGainPrivileges: own.allowPrivilegeEscalation ?? true,
        namespace,
      };
      const executor = {
        ...{ nonRoot: false, seccomp: 'Unconfined', appArmor: 'Unconfined', mayGainPrivileges: true },
        namespace: 'sandbus-executors',
      };
      const other = {
        ...{ nonRoot: true, seccomp: 'RuntimeDefault', appArmor: undefined, mayGainPrivileges: false },
        namespace: 'sandbus',
      };
      assert.deepEqual(seen, isExecutor(workload) ? executor : other, name);
    }
    const levels = all.manifests
      .filter(({ kind }) => kind === 'Namespace')
      .map(({ metadata }) => [metadata.name, metadata.labels['pod-security.kubernetes.io/enforce']]);
    assert.deepEqual(Object.fromEntries(levels), {
      sandbus: 'restricted',
      'sandbus-executors': 'privileged',
    });
  });

  test('no container is privileged, writes its root file system, or has a token or variables of the cluster', () => {
    for (const { name, pod, container } of workloads()) {
      assert.equal(container.securityContext.privileged ?? false, false, name);
      assert.equal(container.securityContext.readOnlyRootFilesystem, true, name);
      assert.equal(pod.automountServiceAccountToken, false, name);
      assert.equal(pod.enableServiceLinks, false, name);
      for (const field of ['hostNetwork', 'hostPID', 'hostIPC']) assert.equal(pod[field], undefined, name);
      assert.equal(
        pod.volumes.some((volume) => 'hostPath' in volume),
        false,
        name,
      );
    }
  });

  test('each mounts its own keys and what is public, as folders, and nothing else of the kind', () => {
    for (const { name, namespace, pod, container } of ours()) {
      const secretName = name.replace('-gpu', '');
      const mounted = pod.volumes.flatMap(({ secret, configMap, projected }) => [
        ...(secret === undefined ? [] : [`Secret ${namespace}/${secret.secretName}`]),
        ...(configMap === undefined ? [] : [`ConfigMap ${namespace}/${configMap.name}`]),
        ...(projected === undefined ? [] : ['projected']),
      ]);
      assert.deepEqual(mounted.sort(), [
        `ConfigMap ${namespace}/public`,
        `Secret ${namespace}/${secretName}`,
      ]);
      const own = secrets.get(`Secret ${namespace}/${secretName}`) ?? fail(`no Secret of ${name}`);
      assert.deepEqual(Object.keys(own).sort(), ownFiles[name], name);
      const open = secrets.get(`ConfigMap ${namespace}/public`) ?? fail(`no ConfigMap for ${name}`);
      assert.deepEqual(Object.keys(open).sort(), publicFiles);
      assert.equal(
        container.volumeMounts.some((mount) => 'subPath' in mount),
        false,
      );
    }
  });

  test('every mount has its volume, and every volume of a pod is mounted', () => {
    for (const { name, pod, container, claims } of workloads()) {
      const volumes = [...pod.volumes.map((volume) => volume.name), ...claims].sort();
      assert.deepEqual(container.volumeMounts.map((mount) => mount.name).sort(), volumes, name);
    }
  });

  test('services know each variable, and each file that one names is mounted where it is read', () => {
    for (const { name, namespace, container } of ours()) {
      const environment = {
        ...generated(all, namespace, 'services'),
        ...Object.fromEntries(container.env.map((entry) => [entry.name, entry.value ?? '2'])),
      };
      const config = loadConfig(commonShape, environment);
      assert.equal(config.SANDBUS_NATS_URL, 'tls://nats.sandbus.svc:4222');
      assert.equal(config.SANDBUS_HEALTH_ADDRESS?.host, '0.0.0.0');
      const own = ownFiles[name] ?? fail(name);
      for (const [variable, value] of Object.entries(environment)) {
        const [, folder, file = ''] = /^(\/etc\/sandbus|\/run\/sandbus)\/(.*)$/.exec(value) ?? [];
        if (folder === undefined || (onlyOf[variable] ?? name) !== name) continue;
        if (name === 'topology' && variable === 'SANDBUS_EVENT_KEY') continue;
        const there = folder === '/etc/sandbus' ? publicFiles : own;
        assert.ok(there.includes(file), `${name}: ${variable}=${value}`);
      }
    }
  });

  test('probes ask where a service answers', () => {
    for (const { name, container } of ours().filter(({ kind }) => kind !== 'Job')) {
      const { readinessProbe, livenessProbe, ports } = container;
      const health = ports.find((port) => port.name === 'health')?.containerPort;
      assert.deepEqual(
        [health, readinessProbe?.httpGet, livenessProbe?.httpGet],
        [8080, { path: '/readyz', port: 'health' }, { path: '/livez', port: 'health' }],
        name,
      );
    }
  });

  test('an executor has the time that it gives its jobs, and then some', () => {
    const graceMs = Number(generated(all, 'sandbus-executors', 'services').SANDBUS_GRACE_MS);
    for (const { pod } of workloads().filter(isExecutor))
      assert.ok((pod.terminationGracePeriodSeconds ?? 0) * 1000 >= graceMs + 20_000);
  });

  test('nothing may come in or go out but what a policy lets, and whoever speaks to the bus is let', () => {
    const policies = all.manifests.filter(({ kind }) => kind === 'NetworkPolicy');
    for (const namespace of ['sandbus', 'sandbus-executors']) {
      const nothing = policies.find(
        ({ metadata }) => metadata.name === 'nothing' && metadata.namespace === namespace,
      );
      assert.deepEqual(nothing?.spec?.podSelector, {});
      assert.deepEqual(nothing?.spec?.policyTypes, ['Ingress', 'Egress']);
      assert.equal(nothing?.spec?.ingress ?? nothing?.spec?.egress, undefined);
    }
    for (const { name, labels } of ours()) assert.equal(labels['sandbus.dev/bus'], 'client', name);
    // A label that a policy names is one that some pod has.
    const labelled = (wanted: Readonly<Record<string, string>>) =>
      workloads().some(({ labels }) => Object.entries(wanted).every(([key, value]) => labels[key] === value));
    for (const { spec, metadata } of policies)
      assert.ok(labelled(spec?.podSelector?.matchLabels ?? {}), metadata.name);
  });

  test('each selector finds the pods of its own', () => {
    for (const { metadata, spec, kind } of all.manifests) {
      const wanted = spec?.selector?.matchLabels;
      if (wanted === undefined) continue;
      const { labels } =
        workloads().find(
          ({ name, namespace }) => name === metadata.name && namespace === metadata.namespace,
        ) ?? fail(`${kind} ${metadata.name}`);
      for (const [key, value] of Object.entries(wanted)) assert.equal(labels[key], value, metadata.name);
    }
  });

  test('the volume of the server holds what its configuration lets it store', () => {
    const conf = generated(base, 'sandbus', 'nats')['nats.conf'] ?? '';
    assert.equal(conf, readFileSync(join(installation.root, 'deploy/nats/nats.conf'), 'utf8'));
    const gigabytes = Number(/max_file_store: (\d+)GB/.exec(conf)?.[1]);
    const gibibytes = Number(/"storage":"(\d+)Gi"/.exec(JSON.stringify(claimsOf(base, 'nats')))?.[1]);
    assert.ok(gibibytes * 1024 ** 3 >= gigabytes * 1000 ** 3, `${gibibytes} Gi for ${gigabytes} GB`);
  });

  test('what is rendered and what the script prints is valid by the schemas of Kubernetes', {
    skip: 'missing' in python ? python.missing : false,
  }, async () => {
    const program = 'program' in python ? python.program : '';
    const { stdout } = await state.secrets();
    for (const text of [base.text, all.text, stdout]) {
      const versions = ['1.30.0', '1.37.0'];
      const script = '../kubernetes/validate.py';
      const verdict = await runPython(program, script, versions, text);
      const count = parseManifests(text).length;
      assert.deepEqual([verdict.code, verdict.stdout], [0, `${count}\n`], verdict.stderr);
    }
    const wrong = base.text.replace('automountServiceAccountToken:', 'autoMountServiceAccountToken:');
    assert.equal((await runPython(program, '../kubernetes/validate.py', ['1.37.0'], wrong)).code, 1);
  });
});

const claimsOf = ({ manifests }: Rendered, name: string): unknown =>
  manifests.find(({ kind, metadata }) => kind === 'StatefulSet' && metadata.name === name)?.spec
    ?.volumeClaimTemplates;
