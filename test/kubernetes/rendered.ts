/** The manifests of deploy/kubernetes as `kubectl apply -k` would send them: rendered by kustomize itself. */
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { z } from 'zod';
import { installation } from '../../services/platform/config.ts';
import { runChild } from '../../services/platform/process.ts';

/** As test/kustomize builds it. */
const version = 'v5.8.1';
const folder = join(installation.root, 'deploy/kubernetes');

/** The words before a folder that make it render it; null where there is no kustomize, built or installed. */
export function findKustomize(): readonly string[] | null {
  const cache = process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache');
  const built = process.env.SANDBUS_KUSTOMIZE ?? join(cache, 'sandbus', `kustomize-${version}`, 'kustomize');
  if (existsSync(built)) return [built, 'build'];
  const kubectl = ['/usr/local/bin/kubectl', '/usr/bin/kubectl'].find((file) => existsSync(file));
  return kubectl === undefined ? null : [kubectl, 'kustomize'];
}

/** False where they can be rendered, else why not. */
export const withoutKustomize =
  findKustomize() === null ? 'there is neither kustomize (sh test/kustomize) nor kubectl' : false;

const names = z.record(z.string(), z.string());
const keySource = z.object({ name: z.string() });
const probe = z.object({ httpGet: z.object({ path: z.string(), port: z.string() }) });
const quantities = z.record(z.string(), z.union([z.string(), z.number()]));

const container = z.looseObject({
  name: z.string(),
  image: z.string(),
  command: z.array(z.string()).default([]),
  args: z.array(z.string()).default([]),
  env: z.array(z.looseObject({ name: z.string(), value: z.string().optional() })).default([]),
  envFrom: z.array(z.object({ configMapRef: keySource })).default([]),
  ports: z.array(z.looseObject({ name: z.string(), containerPort: z.number() })).default([]),
  readinessProbe: probe.optional(),
  livenessProbe: probe.optional(),
  startupProbe: probe.optional(),
  resources: z.object({ requests: quantities.default({}), limits: quantities.default({}) }),
  volumeMounts: z
    .array(z.object({ name: z.string(), mountPath: z.string(), readOnly: z.boolean().default(false) }))
    .default([]),
  securityContext: z.looseObject({
    allowPrivilegeEscalation: z.boolean().optional(),
    privileged: z.boolean().optional(),
    readOnlyRootFilesystem: z.boolean().optional(),
    runAsUser: z.number().optional(),
    capabilities: z.object({ drop: z.array(z.string()), add: z.array(z.string()).default([]) }),
    seccompProfile: z.object({ type: z.string() }).optional(),
    appArmorProfile: z.object({ type: z.string() }).optional(),
  }),
});

const projection = z.object({ configMap: keySource.optional(), secret: keySource.optional() });
const volume = z.looseObject({
  name: z.string(),
  configMap: keySource.optional(),
  secret: z.looseObject({ secretName: z.string() }).optional(),
  projected: z.looseObject({ sources: z.array(projection) }).optional(),
});

const podSpec = z.looseObject({
  containers: z.array(container),
  initContainers: z.array(container).default([]),
  volumes: z.array(volume).default([]),
  automountServiceAccountToken: z.boolean().optional(),
  enableServiceLinks: z.boolean().optional(),
  terminationGracePeriodSeconds: z.number().optional(),
  securityContext: z
    .looseObject({
      runAsNonRoot: z.boolean().optional(),
      seccompProfile: z.object({ type: z.string() }).optional(),
    })
    .optional(),
});

const manifestShape = z.looseObject({
  apiVersion: z.string(),
  kind: z.string(),
  metadata: z.looseObject({ name: z.string(), namespace: z.string().optional(), labels: names.default({}) }),
  data: names.default({}),
  binaryData: names.default({}),
  spec: z
    .looseObject({
      replicas: z.number().optional(),
      selector: z.looseObject({ matchLabels: names.optional() }).optional(),
      template: z.object({ metadata: z.object({ labels: names }), spec: podSpec }).optional(),
      volumeClaimTemplates: z.array(z.looseObject({ metadata: keySource })).optional(),
      podSelector: z.looseObject({ matchLabels: names.optional() }).optional(),
      policyTypes: z.array(z.string()).optional(),
    })
    .optional(),
});

export type Manifest = z.infer<typeof manifestShape>;
export type Container = z.infer<typeof container>;
export interface Workload {
  readonly name: string;
  readonly kind: string;
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly pod: z.infer<typeof podSpec>;
  readonly container: Container;
  /** Names of what the pod mounts besides its volumes. */
  readonly claims: readonly string[];
}

export interface Rendered {
  readonly text: string;
  readonly manifests: readonly Manifest[];
  readonly workloads: readonly Workload[];
}

/** Throws where kustomize says no. */
export async function renderFolder(kustomize: readonly string[], path: string): Promise<Rendered> {
  const [program = '', ...words] = [...kustomize, path];
  const environment = { PATH: '/usr/bin:/bin', HOME: tmpdir() };
  const { code, stdout, stderr } = await runChild(program, words, environment);
  if (code !== 0) throw new Error(`kustomize: ${stderr}`);
  const text = stdout.toString();
  const manifests = parseManifests(text);
  return { text, manifests, workloads: manifests.flatMap(workloadOf) };
}

/** Everything that there is, as an operator's own kustomization.yaml combines it. */
export async function renderAll(kustomize: readonly string[]): Promise<Rendered> {
  const own = await mkdtemp(join(tmpdir(), 'sandbus-kustomize-'));
  try {
    const base = relative(own, folder);
    await writeFile(
      join(own, 'kustomization.yaml'),
      JSON.stringify({
        resources: [base, `${base}/gpu`],
        components: [`${base}/three-nodes`],
        images: [{ name: 'sandbus', newName: 'registry.example/sandbus', newTag: '9' }],
        configMapGenerator: ['sandbus', 'sandbus-executors'].map((namespace) => ({
          ...{ name: 'services', namespace, behavior: 'merge' },
          literals: ['OTEL_EXPORTER_OTLP_ENDPOINT=http://collector.tracing.svc:4318'],
        })),
      }),
    );
    return await renderFolder(kustomize, own);
  } finally {
    await rm(own, { recursive: true });
  }
}

export const renderBase = (kustomize: readonly string[]): Promise<Rendered> =>
  renderFolder(kustomize, folder);

export const parseManifests = (text: string): Manifest[] =>
  parseAllDocuments(text).map((document) => manifestShape.parse(document.toJS()));

function workloadOf({ kind, metadata, spec }: Manifest): Workload[] {
  if (spec?.template === undefined) return [];
  const pod = spec.template.spec;
  const [only, ...others] = [...pod.containers, ...pod.initContainers];
  if (only === undefined || others.length > 0) throw new Error(`${metadata.name} has not one container`);
  return [
    {
      ...{ kind, name: metadata.name, namespace: metadata.namespace ?? '', pod, container: only },
      labels: spec.template.metadata.labels,
      claims: (spec.volumeClaimTemplates ?? []).map((claim) => claim.metadata.name),
    },
  ];
}

/** What the kustomization has made a ConfigMap of; its name has a digest at its end. */
export function generated({ manifests }: Rendered, namespace: string, name: string): Record<string, string> {
  const found = manifests.filter(
    ({ kind, metadata }) =>
      kind === 'ConfigMap' && metadata.namespace === namespace && metadata.name.startsWith(`${name}-`),
  );
  const [only, ...others] = found;
  if (only === undefined || others.length > 0)
    throw new Error(`${found.length} ConfigMaps ${name} in ${namespace}`);
  return only.data;
}
