/** The router: finds each job's runtime, hands it to the executors of its route, and supervises it to its end. */
import { consume } from '../platform/consume.ts';
import { deadLetterTo } from '../platform/dead-letter.ts';
import { JobStates } from '../platform/job-state.ts';
import type { StartService } from '../platform/service.ts';
import { consumers } from '../platform/topology.ts';
import { Admission } from './admission.ts';
import { loadRouterConfig } from './config.ts';
import type { RouterParts } from './handler.ts';
import { handleCancel, handleVerified, rejectExhausted } from './handler.ts';
import { startSupervisor } from './supervisor.ts';

const slots = 32;
const maxDeliveries = 20;

export const start: StartService = async (context) => {
  const { bus, log, clock } = context;
  const parts: RouterParts = {
    context,
    states: await JobStates.bind(bus),
    config: loadRouterConfig(),
    admission: new Admission(),
  };
  // First: it brings what is known of all jobs, which routing builds on.
  const supervisor = await startSupervisor(parts);
  const common = {
    bus,
    slots,
    maxDeliveries,
    log,
    deadLetter: deadLetterTo(bus, 'router', () => clock.nowMs()),
  };
  const routing = consume({
    ...common,
    consumer: consumers.router,
    handler: (d) => handleVerified(parts, d),
    exhausted: (d, detail) => rejectExhausted(parts, d, detail),
  });
  const cancels = consume({
    ...common,
    consumer: consumers.routerCancels,
    handler: (d) => handleCancel(parts, d),
  });
  return {
    failed: Promise.race([routing.failed, cancels.failed, supervisor.failed]),
    stop: async () => {
      supervisor.stop();
      await Promise.all([routing.stop(), cancels.stop()]);
    },
  };
};
