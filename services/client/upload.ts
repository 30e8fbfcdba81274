/** Sends large content in chunks, each acknowledged with the offset that is wanted next, so that any fault can be resumed. */
import { setTimeout as delay } from 'node:timers/promises';
import { OperationalError } from '../platform/errors.ts';
import type { Bus } from '../platform/nats/bus.ts';
import { chunkBytes, headerNames, subjects } from '../platform/topology.ts';
import type { ContentSource } from './content.ts';
import { parseReply, request } from './request.ts';

export interface UploadProgress {
  readonly sha256: string;
  readonly sentBytes: number;
  readonly totalBytes: number;
}

export type OnProgress = (progress: UploadProgress) => void;

interface UploadState {
  readonly offset: number;
  readonly complete: boolean;
}

/** So often in a row a chunk may fail to arrive before the upload is given up. */
const mostFaults = 8;

/** Sends `source` unless the receiver has it already. What is left of an earlier, broken upload is continued. */
export async function uploadContent(
  bus: Bus,
  tenant: string,
  source: ContentSource,
  onProgress: OnProgress = () => undefined,
): Promise<void> {
  const most = Math.min(chunkBytes, bus.maxPayload - 8192);
  let faults = 0;
  let reached = -1;
  let state: UploadState | null = null;
  while (state?.complete !== true) {
    try {
      state =
        state === null ? await ask(bus, tenant, source) : await sendChunk(bus, tenant, source, state, most);
      onProgress({ sha256: source.sha256, sentBytes: state.offset, totalBytes: source.size });
      // Only what is further than ever before counts: an answer to the question how far it came is no progress.
      faults = state.offset > reached ? 0 : faults + 1;
      reached = Math.max(reached, state.offset);
    } catch (error) {
      if (!(error instanceof OperationalError) || !isTransient(error)) throw explained(error, source);
      faults += 1;
      if (faults > mostFaults) throw explained(error, source);
      // After a fault nobody knows what arrived: ask.
      state = null;
    }
    if (faults > mostFaults) throw stuck(source, state);
    if (faults > 0) await delay(Math.min(2000, 100 * 2 ** faults));
  }
}

/** An empty chunk at offset 0 asks how far the upload has come. */
function ask(bus: Bus, tenant: string, source: ContentSource): Promise<UploadState> {
  return send(bus, tenant, source, 0, new Uint8Array());
}

async function sendChunk(bus: Bus, tenant: string, source: ContentSource, state: UploadState, most: number) {
  const length = Math.min(most, source.size - state.offset);
  if (length <= 0) return ask(bus, tenant, source);
  return send(bus, tenant, source, state.offset, await source.read(state.offset, length));
}

async function send(bus: Bus, tenant: string, source: ContentSource, offset: number, bytes: Uint8Array) {
  const headers = { [headerNames.offset]: String(offset), [headerNames.size]: String(source.size) };
  const reply = await request(bus, subjects.upload(tenant, source.sha256), bytes, {
    headers,
    timeoutMs: 30_000,
  });
  return parseReply<UploadState>(reply.data);
}

/** Sending the same again would be refused the same; all else may pass. */
const finalCodes = new Set([
  'MALFORMED',
  'PLUGIN_TOO_LARGE',
  'DIGEST_MISMATCH',
  'TOO_LARGE',
  'BUS_FULL',
  'QUOTA_EXCEEDED',
  'NATS_REFUSED',
]);

const isTransient = (error: OperationalError): boolean => !finalCodes.has(error.code);

/** Says which file it was about: the subject names its digest alone. */
function explained(error: unknown, { name }: ContentSource): unknown {
  if (!(error instanceof OperationalError)) return error;
  const full = 'the bus is full: it has no room for it until older ones have been removed; try again later';
  const what = error.code === 'BUS_FULL' ? full : error.message;
  return new OperationalError(error.code, `cannot upload ${name}: ${what}`, { cause: error });
}

function stuck(source: ContentSource, state: UploadState | null): OperationalError {
  const at = `${state?.offset ?? 0} of ${source.size} bytes`;
  return new OperationalError('UPLOAD_STUCK', `upload of ${source.name} does not get past ${at}`);
}
