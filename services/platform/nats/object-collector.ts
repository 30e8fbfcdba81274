/** Removes objects whose time is over, and chunks that belong to no object. */
import { isNotFound } from './failures.ts';
import type { Description } from './object-description.ts';
import { chunkSubject, nameSubject, parseDescription } from './object-description.ts';
import type { ObjectTarget } from './object-writer.ts';
import { dropChunks } from './object-writer.ts';

export interface Collected {
  /** Keys of the objects that were removed. */
  readonly removed: readonly string[];
  /** Ids of chunks that belonged to nothing, and are gone now. */
  readonly dropped: readonly string[];
  /** Ids of chunks that belong to nothing yet: perhaps somebody is just writing them. */
  readonly suspects: ReadonlySet<string>;
  /** What is left. */
  readonly kept: readonly Pick<Description, 'name' | 'size'>[];
}

export async function collectObjects(
  target: ObjectTarget,
  about: {
    readonly nowMs: number;
    readonly growing: ReadonlySet<string>;
    readonly suspects: ReadonlySet<string>;
  },
): Promise<Collected> {
  // Before the descriptions, so that what is described meanwhile counts as described.
  const withChunks = await idsOfChunks(target);
  const removed: string[] = [];
  const kept: Description[] = [];
  for await (const { description, sequence } of descriptions(target))
    if (description.keepUntilMs > about.nowMs) kept.push(description);
    else if (await removeObject(target, description, sequence)) removed.push(description.name);
    else kept.push(description);
  const described = new Set(kept.map(({ id }) => id));
  const loose = withChunks.filter((id) => !described.has(id) && !about.growing.has(id));
  const dropped = loose.filter((id) => about.suspects.has(id));
  for (const id of dropped) await dropChunks(target, id);
  return { removed, dropped, kept, suspects: new Set(loose.filter((id) => !about.suspects.has(id))) };
}

/**
 * Removes the object that this description, of that sequence, describes; false when it was described anew meanwhile, as
 * by somebody who wants it kept. The purge of everything below the next sequence is the compare-and-set.
 */
export async function removeObject(
  target: ObjectTarget,
  { name, id }: Description,
  sequence: number,
): Promise<boolean> {
  const { manager, bucket } = target;
  const filter = nameSubject(bucket, name);
  const { purged } = await manager.streams.purge(`OBJ_${bucket}`, { filter, seq: sequence + 1 });
  if (purged === 0) return false;
  await dropChunks(target, id);
  return true;
}

async function* descriptions({ manager, bucket }: ObjectTarget) {
  for (let next = 1; ; ) {
    const query = { seq: next, next_by_subj: `$O.${bucket}.M.>` };
    const message = await manager.streams.getMessage(`OBJ_${bucket}`, query).catch((error: unknown) => {
      if (isNotFound(error)) return null;
      throw error;
    });
    if (message === null) return;
    next = message.seq + 1;
    const description = parseDescription(message.data);
    if (description !== null) yield { description, sequence: message.seq };
  }
}

async function idsOfChunks({ manager, bucket }: ObjectTarget): Promise<string[]> {
  const subjects_filter = chunkSubject(bucket, '*');
  const { state } = await manager.streams.info(`OBJ_${bucket}`, { subjects_filter });
  const prefix = chunkSubject(bucket, '').length;
  return Object.keys(state.subjects ?? {}).map((subject) => subject.slice(prefix));
}
