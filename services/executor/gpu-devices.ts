/**
 * What a GPU job gets of this host's graphics processors. The driver's own description, a CDI specification, comes
 * first; without one it is the device nodes that are there.
 * CDI: https://github.com/cncf-tags/container-device-interface/blob/main/SPEC.md
 */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { messageOf } from '../platform/errors.ts';

export interface GpuAccess {
  readonly devices: readonly { readonly path: string; readonly access: string }[];
  readonly binds: readonly { readonly source: string; readonly target: string }[];
  readonly env: Readonly<Record<string, string>>;
  /** The file that said so, or `discovery`. */
  readonly source: string;
}

export interface GpuSearch {
  /** Null where there is no GPU. */
  readonly access: GpuAccess | null;
  /** What the operator should know of. */
  readonly warnings: readonly string[];
}

export interface GpuPlaces {
  readonly specFolders: readonly string[];
  readonly devFolder: string;
}

const usualPlaces: GpuPlaces = { specFolders: ['/etc/cdi', '/var/run/cdi'], devFolder: '/dev' };

export async function findGpus(places: GpuPlaces = usualPlaces): Promise<GpuSearch> {
  const warnings: string[] = [];
  const specs: { path: string; spec: CdiSpec }[] = [];
  for (const folder of places.specFolders)
    for (const name of (await readdir(folder).catch(() => [])).sort()) {
      const path = join(folder, name);
      if (name.endsWith('.json')) await readSpec(path, specs, warnings);
      else if (/\.ya?ml$/.test(name))
        warnings.push(`${path}: only JSON is read; write it with \`nvidia-ctk cdi generate --format=json\``);
    }
  const described = specs.length > 0 ? accessOf(specs) : null;
  return { access: described ?? (await discover(places.devFolder)), warnings };
}

const edits = z.object({
  env: z.array(z.string()).default([]),
  deviceNodes: z
    .array(
      z.object({
        path: z.string().startsWith('/dev/'),
        hostPath: z.string().optional(),
        permissions: z
          .string()
          .regex(/^[rwm]+$/)
          .optional(),
      }),
    )
    .default([]),
  mounts: z
    .array(z.object({ hostPath: z.string().startsWith('/'), containerPath: z.string().startsWith('/') }))
    .default([]),
});

const specShape = z.object({
  cdiVersion: z.string(),
  kind: z.string().regex(/^[^/]+\/[^/]+$/),
  devices: z.array(z.object({ name: z.string(), containerEdits: edits })).min(1),
  containerEdits: edits.default({ env: [], deviceNodes: [], mounts: [] }),
});

type CdiSpec = z.infer<typeof specShape>;
type Edits = z.infer<typeof edits>;

async function readSpec(
  path: string,
  specs: { path: string; spec: CdiSpec }[],
  warnings: string[],
): Promise<void> {
  try {
    const spec = specShape.parse(JSON.parse(await readFile(path, 'utf8')));
    if (/\/gpu$/.test(spec.kind)) specs.push({ path, spec });
    else warnings.push(`${path}: ${spec.kind} is not a GPU, left out`);
  } catch (error) {
    warnings.push(`${path} is no CDI specification: ${messageOf(error)}`);
  }
}

/** All devices of all specifications; the device `all`, where a vendor has one, stands for the others. */
function accessOf(specs: readonly { path: string; spec: CdiSpec }[]): GpuAccess {
  const parts: Edits[] = specs.flatMap(({ spec }) => {
    const all = spec.devices.find((device) => device.name === 'all');
    const devices = all === undefined ? spec.devices : [all];
    return [spec.containerEdits, ...devices.map((device) => device.containerEdits)];
  });
  const devices = new Map<string, { path: string; access: string }>();
  const binds = new Map<string, { source: string; target: string }>();
  for (const { deviceNodes, mounts } of parts) {
    // The launcher makes a node under its own path: a specification that renames one cannot be followed.
    for (const node of deviceNodes)
      devices.set(node.path, { path: node.hostPath ?? node.path, access: node.permissions ?? 'rw' });
    for (const mount of mounts)
      binds.set(mount.containerPath, { source: mount.hostPath, target: mount.containerPath });
  }
  const env = Object.fromEntries(parts.flatMap((part) => part.env.map(splitVariable)));
  return {
    devices: [...devices.values()],
    binds: [...binds.values()],
    env,
    source: specs.map(({ path }) => path).join(', '),
  };
}

function splitVariable(variable: string): [string, string] {
  const at = variable.indexOf('=');
  return at < 0 ? [variable, ''] : [variable.slice(0, at), variable.slice(at + 1)];
}

/** A node that is a GPU, and nodes that are only of use beside one. */
const gpuNode = /^(nvidia\d+|kfd|dri\/renderD\d+)$/;
const companionNode = /^(nvidiactl|nvidia-modeset|nvidia-uvm|nvidia-uvm-tools|nvidia-caps\/nvidia-cap\d+)$/;

async function discover(devFolder: string): Promise<GpuAccess | null> {
  const below = async (folder: string) =>
    (await readdir(join(devFolder, folder)).catch(() => [])).map((name) => join(folder, name));
  const names = (await Promise.all(['', 'dri', 'nvidia-caps'].map(below))).flat().sort();
  if (!names.some((name) => gpuNode.test(name))) return null;
  const devices = names
    .filter((name) => gpuNode.test(name) || companionNode.test(name))
    .map((name) => ({ path: join(devFolder, name), access: 'rw' }));
  return { devices, binds: [], env: {}, source: 'discovery' };
}
