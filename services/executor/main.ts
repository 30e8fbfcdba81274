/** The executor: runs routed jobs in the launcher's sandbox, and says how each ended. */
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { keepCollecting } from '../platform/collecting.ts';
import { deadLetterTo } from '../platform/dead-letter.ts';
import { messageOf, UsageError } from '../platform/errors.ts';
import { JobStates } from '../platform/job-state.ts';
import { observeSlots } from '../platform/metrics.ts';
import type { ServiceContext, StartService } from '../platform/service.ts';
import { subjects } from '../platform/topology.ts';
import { WatchedFile } from '../platform/watched-file.ts';
import { createEnvelopeMemory, parsePolicy } from '../trust/index.ts';
import { trustChecks } from '../trust-store/health.ts';
import { TrustStoreKeeper } from '../trust-store/keeper.ts';
import { TrustStoreMarks } from '../trust-store/marks.ts';
import type { ExecutorConfig } from './config.ts';
import { loadExecutorConfig } from './config.ts';
import { ContentStore } from './content-store.ts';
import { WorkHandler } from './handler.ts';
import { takeInventory } from './inventory.ts';
import { Launcher } from './launcher.ts';
import type { HostReport } from './launcher-result.ts';
import { MemoryBudget } from './memory-budget.ts';
import type { ExecutorParts } from './parts.ts';
import { WorkFolder } from './work-folder.ts';
import { WorkLoop } from './work-loop.ts';

/** After the grace time, for the launchers to end and the bus to take what they say. */
const lastWordsMs = 5_000;

export const start: StartService = async (context) => {
  const { bus, log, clock } = context;
  const config = loadExecutorConfig();
  const giveUp = new AbortController();
  const parts = await assemble(context, config, giveUp.signal);
  const budget = new MemoryBudget(config.memoryBudgetBytes);
  const handler = new WorkHandler(parts, budget);
  const loop = new WorkLoop({
    bus,
    log,
    routes: parts.inventory.routes,
    slots: config.slots,
    hasRoom: () => budget.hasRoom,
    handler: (delivery) => handler.handle(delivery),
    deadLetter: deadLetterTo(bus, 'executor', () => clock.nowMs()),
  });
  observeSlots(config.slots, () => loop.busy);
  const stopNotices = bus.listen(subjects.cancelNotice(config.id), ({ data }) =>
    handler.onCancelNotice(Buffer.from(data).toString('utf8')),
  );
  const stopCollecting = keepCollecting({ bucket: parts.artifacts, log, nowMs: () => clock.nowMs() });
  // A store that is gone stops new jobs; only one that says so takes the permission from running ones.
  parts.trust.onChange((store) => store !== null && handler.endRevoked(store));
  return {
    failed: loop.failed,
    checks: [...trustChecks(parts.trust, parts.policy)],
    stop: async (hurry) => {
      await loop.stop();
      await within(config.graceMs, loop.idle(), hurry);
      handler.endAll();
      if (!(await within(lastWordsMs, loop.idle()))) giveUp.abort();
      await loop.idle();
      stopNotices();
      stopCollecting();
      await parts.trust.stop();
      await parts.launcher.close();
      await parts.folders.close();
    },
  };
};

async function assemble(
  context: ServiceContext,
  config: ExecutorConfig,
  giveUp: AbortSignal,
): Promise<ExecutorParts> {
  const { bus, log, clock } = context;
  // Twice the slots: a job that was given up may still be ending when the next one starts.
  const launcher = new Launcher(config.launcher, Math.min(1024, 2 * config.slots));
  const host = await checkHost(launcher, config);
  const inventory = await takeInventory(config.interpreters, log);
  const state = join(config.stateDir, 'executor');
  const content = new ContentStore(join(state, 'objects'), await bus.objects('plugins'));
  await content.open();
  describe(context, config, { inventory, host });
  const marks = new TrustStoreMarks(await bus.kv('trust'));
  const states = await JobStates.bind(bus);
  const artifacts = await bus.objects('artifacts');
  const trust = await TrustStoreKeeper.open({ files: config.files, marks, clock, log });
  // Last: a start that fails leaves no folder behind.
  const folders = await WorkFolder.open(join(state, 'jobs'), config.id, config.hostname);
  return {
    context,
    config,
    states,
    inventory,
    host,
    launcher,
    content,
    folders,
    artifacts,
    trust,
    policy: new WatchedFile(config.files.policy, parsePolicy, log),
    memory: createEnvelopeMemory(),
    giveUp,
  };
}

/** No control, no work: a host that cannot enforce one runs nothing, and says which and how to mend it. */
async function checkHost(launcher: Launcher, config: ExecutorConfig): Promise<HostReport> {
  const [host, syscalls] = await Promise.all([launcher.checkHost(), launcher.syscalls()]).catch(
    (error: unknown) => {
      throw new UsageError(
        `${messageOf(error)}\nbuild the launcher with \`make -C sandbox-runtime\`, or set SANDBUS_LAUNCHER`,
      );
    },
  );
  const missing = host.controls.filter((control) => control.required && !control.ok);
  if (missing.length > 0 || !host.ok) {
    const lines = missing.map(({ name, detail, mend }) => `  ${name}: ${detail ?? 'missing'}. ${mend ?? ''}`);
    const advice = '`sandbus doctor` shows all controls';
    throw new UsageError(
      `this host cannot enforce the sandbox, so nothing runs here:\n${lines.join('\n')}\n${advice}`,
    );
  }
  if (syscalls.digest !== host.filterDigest)
    throw new UsageError(
      `${config.launcher} names two filters, ${syscalls.digest} and ${host.filterDigest}: build it again`,
    );
  return host;
}

function describe(
  { log }: ServiceContext,
  config: ExecutorConfig,
  { inventory, host }: Pick<ExecutorParts, 'inventory' | 'host'>,
): void {
  log.info(
    {
      executor: config.id,
      slots: config.slots,
      memoryBudgetBytes: config.memoryBudgetBytes,
      routes: inventory.routes.map(({ runtime, deviceClass }) => `${runtime}.${deviceClass}`),
      interpreters: [...inventory.interpreters.values()].map(({ path, version, bind }) => ({
        path,
        version,
        bind,
      })),
      gpu: inventory.gpu?.source ?? null,
      filterDigest: host.filterDigest,
      cgroup: host.cgroup,
    },
    'inventory',
  );
}

/** Whether `work` was done within the time, and before somebody was in a hurry. */
async function within(ms: number, work: Promise<void>, hurry?: AbortSignal): Promise<boolean> {
  const timer = new AbortController();
  const signal = hurry === undefined ? timer.signal : AbortSignal.any([timer.signal, hurry]);
  const late = delay(ms, false, { signal }).catch(() => false);
  const done = await Promise.race([work.then(() => true), late]);
  timer.abort();
  return done;
}
