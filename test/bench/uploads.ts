/**
 * How long an upload takes: `sh deploy/node test/bench/uploads.ts [MiB]`. Against the same bytes published in the same
 * chunks, each confirmed, which is the least that it can take.
 */
import { randomBytes } from 'node:crypto';
import { openContent } from '../../services/client/content.ts';
import { uploadContent } from '../../services/client/upload.ts';
import { createLogger } from '../../services/platform/log.ts';
import { chunkBytes, requestFilters } from '../../services/platform/topology.ts';
import { SeenContent } from '../../services/verifier/upload-progress.ts';
import { answerUpload } from '../../services/verifier/uploads.ts';
import { startTestNats } from '../with-nats.ts';

const bytes = randomBytes(Number(process.argv[2] ?? '64') * 1024 * 1024);
const nats = await startTestNats({ sizeFactor: 1 });
try {
  const parts = {
    plugins: await nats.bus.objects('plugins'),
    uploads: await nats.bus.kv('uploads'),
    log: createLogger('bench', 'warn'),
    maxBytes: bytes.length,
    refuse: () => null,
    seen: new SeenContent(),
    onStored: () => undefined,
  };
  nats.bus.serve(requestFilters.upload, 'verifier', (request) => answerUpload(parts, request));
  const seconds = async (work: () => Promise<void>) => {
    const began = performance.now();
    await work();
    return (performance.now() - began) / 1000;
  };
  const bare = await seconds(async () => {
    for (let at = 0; at < bytes.length; at += chunkBytes)
      await nats.bus.publish('log.acme.bench.stdout', bytes.subarray(at, at + chunkBytes));
  });
  const upload = await seconds(async () => uploadContent(nats.bus, 'acme', await openContent(bytes)));
  const rate = (s: number) => `${s.toFixed(2)} s, ${(bytes.length / 1024 / 1024 / s).toFixed(0)} MiB/s`;
  process.stdout.write(`bare publish ${rate(bare)}\nupload       ${rate(upload)}\n`);
  process.stdout.write(`ratio        ${(upload / bare).toFixed(1)}\n`);
} finally {
  await nats.stop();
}
