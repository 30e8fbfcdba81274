/** Plugin bytes: those that came inside a submission, and those that were uploaded before. */
import { createHash } from 'node:crypto';
import type { Content } from '../../schemas/generated/events.ts';
import type { ObjectBucket } from '../platform/nats/objects.ts';
import type { PluginFacts } from './decide.ts';

const headBytes = 256;

export const sha256Hex = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

/** What an object of `bytes` says about itself, so that later jobs need not read it again. */
export function objectMetadata(firstBytes: Uint8Array): Record<string, string> {
  return { head: Buffer.from(firstBytes.subarray(0, headBytes)).toString('base64') };
}

/** Facts of the bytes that are really there; null when an upload is missing. */
export async function findPlugin(content: Content, store: ObjectBucket): Promise<PluginFacts | null> {
  if (content.inline !== null) {
    const { inline } = content;
    return { sha256: sha256Hex(inline), size: inline.length, head: inline.subarray(0, headBytes) };
  }
  // Objects are named by a digest that was checked when they were stored, and is checked again when they are read.
  const info = await store.info(content.sha256);
  if (info === null) return null;
  return {
    sha256: content.sha256,
    size: info.size,
    head: Buffer.from(info.metadata.head ?? '', 'base64'),
  };
}

/** Moves inline bytes into the object store, where executors find them. */
export async function storePlugin(content: Content, facts: PluginFacts, store: ObjectBucket): Promise<void> {
  if (content.inline !== null)
    await store.put(facts.sha256, [content.inline], objectMetadata(content.inline));
}
