/** What this host can run, and so which routes its executor serves. */
import type { Runtime } from '../../schemas/generated/events.ts';
import type { Logger } from '../platform/log.ts';
import type { Route } from '../platform/topology.ts';
import { routes } from '../platform/topology.ts';
import type { GpuAccess } from './gpu-devices.ts';
import { findGpus } from './gpu-devices.ts';
import type { Interpreted, Interpreter } from './interpreters.ts';
import { findInterpreters } from './interpreters.ts';

export interface Inventory {
  readonly interpreters: ReadonlyMap<Interpreted, Interpreter>;
  readonly gpu: GpuAccess | null;
  /** Only what can be served here; native always. */
  readonly routes: readonly Route[];
}

export async function takeInventory(
  chosen: Readonly<Record<Interpreted, string | null>>,
  log: Logger,
): Promise<Inventory> {
  const [found, gpus] = await Promise.all([findInterpreters(chosen), findGpus()]);
  const interpreters = new Map<Interpreted, Interpreter>();
  for (const one of found) {
    if (one.ok) interpreters.set(one.interpreter.runtime, one.interpreter);
    else log.warn({ runtime: one.runtime, fault: one.fault }, 'runtime not served: no interpreter');
  }
  for (const warning of gpus.warnings) log.warn({ warning }, 'CDI');
  return { interpreters, gpu: gpus.access, routes: servedRoutes(new Set(interpreters.keys()), gpus.access) };
}

export function servedRoutes(interpreted: ReadonlySet<Interpreted>, gpu: GpuAccess | null): Route[] {
  const has = (runtime: Runtime) => runtime === 'native' || interpreted.has(runtime);
  return routes.filter(({ runtime, deviceClass }) => has(runtime) && (deviceClass === 'cpu' || gpu !== null));
}
