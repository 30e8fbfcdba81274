/** Content that a job brings: what came inside a submission, and what was uploaded before. */
import { createHash } from 'node:crypto';
import type { Content, JobSubmitted } from '../../schemas/generated/events.ts';
import { contentHeadBytes } from '../platform/detect-runtime.ts';
import type { ObjectBucket } from '../platform/nats/objects.ts';
import { isSha256, keepMsOf, objectKey } from '../platform/topology.ts';
import type { PluginFacts } from './decide.ts';

/** A job starts by its deadline; an executor that has just begun to fetch its content then still finds it. */
const afterDeadlineMs = 3_600_000;
const neededUntilMs = (deadlineMs: number): number =>
  Math.max(deadlineMs + afterDeadlineMs, Date.now() + keepMsOf('plugins'));

export const sha256Hex = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

/** What an object of `bytes` says about itself, so that later jobs need not read it again. */
export function objectMetadata(firstBytes: Uint8Array): Record<string, string> {
  return { head: Buffer.from(firstBytes.subarray(0, contentHeadBytes)).toString('base64') };
}

/** Facts of the bytes that are really there; null when an upload is missing. */
export async function findPlugin(job: JobSubmitted, store: ObjectBucket): Promise<PluginFacts | null> {
  const { inline, sha256 } = job.plugin.content;
  if (inline !== null)
    return { sha256: sha256Hex(inline), size: inline.length, head: inline.subarray(0, contentHeadBytes) };
  // Objects are named by a digest that was checked when they were stored, and is checked again when they are read.
  const info = await store.info(objectKey(job.tenant, sha256));
  if (info === null) return null;
  return { sha256, size: info.size, head: Buffer.from(info.metadata.head ?? '', 'base64') };
}

/**
 * Sees to it that everything that was uploaded for the job stays until its deadline. Returns what is not there, in words;
 * null when all is.
 */
export async function keepUploads(
  job: JobSubmitted,
  deadlineMs: number,
  store: ObjectBucket,
): Promise<string | null> {
  for (const { what, content } of contentsOf(job)) {
    if (content.inline !== null || !isSha256(content.sha256)) continue;
    if (!(await store.keep(objectKey(job.tenant, content.sha256), neededUntilMs(deadlineMs))))
      return `${what}: tenant ${job.tenant} has no upload with the SHA-256 ${content.sha256} (any more)`;
  }
  return null;
}

/** Everything with bytes in it, and its name for people. */
export function contentsOf(job: JobSubmitted): { readonly what: string; readonly content: Content }[] {
  const inputs = job.inputs.map(({ name, content }) => ({ what: `input ${JSON.stringify(name)}`, content }));
  const stdin = job.stdin === null ? [] : [{ what: 'stdin', content: job.stdin }];
  return [{ what: 'plugin', content: job.plugin.content }, ...stdin, ...inputs];
}

/** Moves inline bytes into the object store, where executors find them. */
export async function storePlugin(
  job: JobSubmitted,
  facts: PluginFacts,
  { deadlineMs, store }: { deadlineMs: number; store: ObjectBucket },
): Promise<void> {
  const { inline } = job.plugin.content;
  if (inline === null) return;
  const keepUntilMs = neededUntilMs(deadlineMs);
  await store.put(objectKey(job.tenant, facts.sha256), [inline], {
    metadata: objectMetadata(inline),
    keepUntilMs,
  });
}
