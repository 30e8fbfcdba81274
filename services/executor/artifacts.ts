/** Files that a plugin left in /job/out, as the launcher collected them, go into the object store. */
import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import type { Artifact, SkippedOutput } from '../../schemas/generated/events.ts';
import { messageOf, OperationalError } from '../platform/errors.ts';
import type { ObjectBucket } from '../platform/nats/objects.ts';
import { objectKey } from '../platform/topology.ts';
import type { Insistence } from './insist.ts';
import { insist } from './insist.ts';
import type { LauncherResult } from './launcher-result.ts';

export interface StoredOutputs {
  readonly artifacts: readonly Artifact[];
  readonly skipped: readonly SkippedOutput[];
}

/** How long the store is given to take one file. */
const storeDeadlineMs = 60_000;

/** Stores each file under the tenant and its digest. One that cannot be stored is named, with the reason. */
export async function storeOutputs(
  files: LauncherResult['outputs']['files'],
  from: { readonly folder: string; readonly tenant: string; readonly bucket: ObjectBucket },
  patience: Insistence,
): Promise<StoredOutputs> {
  const artifacts: Artifact[] = [];
  const skipped: SkippedOutput[] = [];
  for (const { name, bytes, sha256 } of files) {
    const artifact = { name, size: bytes, sha256 };
    const giveUp = AbortSignal.any([patience.giveUp, AbortSignal.timeout(storeDeadlineMs)]);
    try {
      await insist({ ...patience, what: `artifact ${name}`, giveUp }, () => storeOne(artifact, from));
      artifacts.push(artifact);
    } catch (error) {
      if (!(error instanceof OperationalError)) throw error;
      patience.log.error({ name, error: messageOf(error) }, 'artifact not stored');
      skipped.push({ name, reason: error.code === 'ARTIFACT_CHANGED' ? 'changed' : 'not-stored' });
    }
  }
  return { artifacts, skipped };
}

async function storeOne(
  artifact: Artifact,
  from: { readonly folder: string; readonly tenant: string; readonly bucket: ObjectBucket },
): Promise<void> {
  const key = objectKey(from.tenant, artifact.sha256);
  const path = join(from.folder, artifact.name);
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  const hash = createHash('sha256');
  let hashed = 0;
  async function* content() {
    for await (const chunk of file.createReadStream({ autoClose: false, highWaterMark: 128 * 1024 })) {
      hash.update(chunk);
      hashed += chunk.length;
      yield chunk as Uint8Array;
    }
  }
  try {
    await from.bucket.put(key, content(), { metadata: { tenant: from.tenant } });
  } finally {
    await file.close();
  }
  // Nothing was read when the store has these bytes already.
  if (hashed === 0 || hash.digest('hex') === artifact.sha256) return;
  await from.bucket.delete(key);
  throw new OperationalError('ARTIFACT_CHANGED', `${path} is not what the launcher collected`);
}
