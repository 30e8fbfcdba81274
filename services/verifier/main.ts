/** The verifier: no job goes on before its signature, digest, trust, expiry and policy are checked. Serves uploads. */
import { keepCollecting } from '../platform/collecting.ts';
import { consume } from '../platform/consume.ts';
import { deadLetterTo } from '../platform/dead-letter.ts';
import { JobStates } from '../platform/job-state.ts';
import type { StartService } from '../platform/service.ts';
import { consumers, mostUploadBytes, requestFilters } from '../platform/topology.ts';
import { WatchedFile } from '../platform/watched-file.ts';
import { createEnvelopeMemory, parsePolicy } from '../trust/index.ts';
import { trustChecks } from '../trust-store/health.ts';
import { TrustStoreKeeper } from '../trust-store/keeper.ts';
import { TrustStoreMarks } from '../trust-store/marks.ts';
import { loadVerifierConfig } from './config.ts';
import { Gate } from './gate.ts';
import type { VerifierParts } from './handler.ts';
import { handleSubmission, rejectExhausted } from './handler.ts';
import { OpenUploads } from './open-uploads.ts';
import { RevocationSweep } from './sweep.ts';
import { SeenContent } from './upload-progress.ts';
import { answerUpload } from './uploads.ts';

const slots = 32;
const maxDeliveries = 20;
/** Of one tenant, at one time. */
const uploadQuota = { uploads: 64, bytes: 2 * mostUploadBytes };
/** Of the store. */
const tenantShare = 0.5;

export const start: StartService = async (context) => {
  const { bus, log, clock } = context;
  const { files } = loadVerifierConfig();
  const marks = new TrustStoreMarks(await bus.kv('trust'));
  const trust = await TrustStoreKeeper.open({ files, marks, clock, log });
  const plugins = await bus.objects('plugins');
  const parts: VerifierParts = {
    context,
    states: await JobStates.bind(bus),
    plugins,
    trust,
    policy: new WatchedFile(files.policy, parsePolicy, log),
    memory: createEnvelopeMemory(),
  };
  const sweep = new RevocationSweep(parts);
  trust.onChange((store) => store !== null && sweep.onStore(store));
  // What was revoked while no verifier ran.
  if (trust.latest.store !== null) sweep.onStore(trust.latest.store);
  const progress = await bus.kv('uploads');
  const { maxBytes: storeBytes } = await bus.streamState('OBJ_plugins');
  const open = await OpenUploads.watch(
    progress,
    { ...uploadQuota, storedBytes: tenantShare * storeBytes },
    clock,
  );
  const uploads = {
    ...{ plugins, uploads: progress, log, maxBytes: mostUploadBytes, seen: new SeenContent() },
    refuse: (tenant: string, size: number) => open.refuse(tenant, size),
    onStored: (key: string, size: number) => open.noteStored(key, size),
  };
  open.keepCollecting(uploads, log);
  const stopCollecting = keepCollecting({
    ...{ bucket: plugins, log, nowMs: () => clock.nowMs() },
    growing: () => open.growing,
    onKept: (kept) => open.noteAllStored(kept),
  });
  const stopUploads = bus.serve(requestFilters.upload, 'verifier', (request) =>
    answerUpload(uploads, request),
  );
  const gate = new Gate(bus, log);
  const loop = consume({
    bus,
    consumer: consumers.verifier,
    slots,
    room: () => gate.room(),
    maxDeliveries,
    handler: (delivery) => handleSubmission(parts, delivery),
    exhausted: (delivery, detail) => rejectExhausted(parts, delivery, detail),
    deadLetter: deadLetterTo(bus, 'verifier', () => clock.nowMs()),
    log,
  });
  return {
    failed: loop.failed,
    checks: [...trustChecks(parts.trust, parts.policy), () => gate.trouble],
    stop: async () => {
      stopUploads();
      open.stop();
      stopCollecting();
      await loop.stop();
      await trust.stop();
      await sweep.stop();
    },
  };
};
