/**
 * An object store keyed by digest. Objects are read chunk by chunk, by sequence: the library would make a consumer, which
 * services may not, and wait for ever on an object with missing chunks. Every read has a deadline and is checked against
 * the digest that it was asked for. Each object says until when it is kept; collectObjects removes what is older.
 */
import { createHash } from 'node:crypto';
import type { JetStreamManager, NatsConnection } from 'nats';
import { OperationalError } from '../errors.ts';
import type { ObjectBucketName } from '../topology.ts';
import { keepMsOf } from '../topology.ts';
import { withoutAccountInfo } from './connection.ts';
import { isFull, isNotFound } from './failures.ts';
import type { Collected } from './object-collector.ts';
import { collectObjects, removeObject } from './object-collector.ts';
import type { Description } from './object-description.ts';
import { chunkSubject, keptUntil, nameSubject, parseDescription } from './object-description.ts';
import type { Content, ObjectTarget, Written } from './object-writer.ts';
import {
  appendChunk,
  describeObject,
  dropChunks,
  newObjectId,
  putDescription,
  writeObject,
} from './object-writer.ts';

export interface ObjectFacts {
  /** Names the chunks of this very object: another of the same key has another. */
  readonly id: string;
  readonly size: number;
  readonly metadata: Readonly<Record<string, string>>;
}

export interface PutFacts {
  readonly metadata?: Readonly<Record<string, string>>;
  /** Until when nobody may collect the object, milliseconds since 1970; the time of the bucket from now unless set. */
  readonly keepUntilMs?: number;
}

const readDeadlineMs = 60_000;
const chunkTimeoutMs = 10_000;
/** A renewal keeps an object for so much longer than was asked, so that not every use writes. */
const renewalSlackMs = 6 * 3_600_000;

export class ObjectBucket {
  readonly #connection: NatsConnection;
  readonly #target: ObjectTarget;
  readonly #manager: JetStreamManager;
  readonly #name: ObjectBucketName;

  private constructor(
    name: ObjectBucketName,
    connection: NatsConnection,
    target: Omit<ObjectTarget, 'bucket'>,
  ) {
    this.#connection = connection;
    this.#target = { ...target, bucket: name };
    this.#manager = target.manager;
    this.#name = name;
  }

  static async bind(connection: NatsConnection, name: ObjectBucketName): Promise<ObjectBucket> {
    const client = connection.jetstream(withoutAccountInfo);
    const manager = await connection.jetstreamManager(withoutAccountInfo);
    return new ObjectBucket(name, connection, { client, manager });
  }

  #usualEndMs(): number {
    return Date.now() + keepMsOf(this.#name);
  }

  /** Size and metadata, or null when there is no such object. */
  async info(key: string): Promise<ObjectFacts | null> {
    const found = await this.#guard(key, () => this.#description(key));
    return found === null ? null : found.description;
  }

  async #description(
    key: string,
  ): Promise<{ description: Description; sequence: number; body: Uint8Array } | null> {
    try {
      const query = { last_by_subj: nameSubject(this.#name, key) };
      const { seq: sequence, data: body } = await this.#manager.streams.getMessage(
        `OBJ_${this.#name}`,
        query,
      );
      const description = parseDescription(body);
      return description === null ? null : { description, sequence, body };
    } catch (error) {
      if (isNotFound(error)) return null;
      throw error;
    }
  }

  /** Stores `content` under `key`; an object of that key that is there already is kept for as long. */
  async put(key: string, content: Content, facts: PutFacts = {}): Promise<void> {
    const { metadata = {}, keepUntilMs = this.#usualEndMs() } = facts;
    if (await this.keep(key, keepUntilMs)) return;
    await this.#guard(key, () => writeObject(this.#target, key, content, { metadata, keepUntilMs }));
  }

  /** Sees to it that nobody collects the object before that time; false when there is none. */
  keep(key: string, untilMs = this.#usualEndMs()): Promise<boolean> {
    return this.#guard(key, async () => {
      for (;;) {
        const found = await this.#description(key);
        if (found === null) return false;
        if (found.description.keepUntilMs >= untilMs) return true;
        const body = keptUntil(found.body, untilMs + renewalSlackMs);
        const subject = nameSubject(this.#name, key);
        if ((await putDescription(this.#target.client, subject, body, found.sequence)) !== null) return true;
      }
    });
  }

  /** Begins an object that grows chunk by chunk, and is one only when it is described. Returns its id. */
  begin(): string {
    return newObjectId();
  }

  /** Sequence of the new chunk; null when `after`, 0 at first, is not the last one's. */
  append(id: string, bytes: Uint8Array, after: number): Promise<number | null> {
    return this.#guard(id, () => appendChunk(this.#target, id, bytes, after));
  }

  /** Makes the chunks an object; false when there is one of this key already. */
  describe(key: string, written: Written, metadata: Readonly<Record<string, string>>): Promise<boolean> {
    const facts = { metadata, keepUntilMs: this.#usualEndMs() };
    return this.#guard(key, () => describeObject(this.#target, key, written, facts));
  }

  /** Removes the chunks of what never became an object. */
  async drop(id: string): Promise<void> {
    await this.#guard(id, () => dropChunks(this.#target, id));
  }

  /**
   * Hands the object's chunks to `sink` in order, then returns true; false when there is no such object.
   * Throws OBJECT_CORRUPT when the bytes are not those of `sha256`, and OBJECT_TIMEOUT when they do not come.
   */
  async read(
    key: string,
    sha256: string,
    sink: (chunk: Uint8Array) => void | Promise<void>,
  ): Promise<boolean> {
    const info = await this.info(key);
    if (info === null) return false;
    const hash = createHash('sha256');
    await this.readChunks(key, info, async (chunk) => {
      hash.update(chunk);
      await sink(chunk);
    });
    const actual = hash.digest('hex');
    if (actual !== sha256) throw this.#corrupt(key, sha256, actual);
    return true;
  }

  /** The first `size` bytes of the chunks of `id`, whether they are an object yet or not. Throws OBJECT_TIMEOUT. */
  async readChunks(
    what: string,
    { id, size }: Pick<ObjectFacts, 'id' | 'size'>,
    sink: (chunk: Uint8Array) => void | Promise<void>,
  ): Promise<void> {
    const giveUpAt = performance.now() + readDeadlineMs;
    let sequence = 0;
    for (let left = size; left > 0; ) {
      const coming = this.chunkAfter(id, sequence);
      const chunk = await this.#within(giveUpAt - performance.now(), what, coming);
      if (chunk === null)
        throw new OperationalError('OBJECT_TIMEOUT', `object ${what} in ${this.#name} ends too early`);
      sequence = chunk.sequence;
      left -= chunk.data.length;
      await sink(chunk.data);
    }
  }

  /** The next chunk of `id` after that sequence, or null. */
  async chunkAfter(id: string, sequence: number): Promise<{ sequence: number; data: Uint8Array } | null> {
    const query = { seq: sequence + 1, next_by_subj: chunkSubject(this.#name, id) };
    const reply = await this.#guard(id, () =>
      this.#connection.request(`$JS.API.DIRECT.GET.OBJ_${this.#name}`, JSON.stringify(query), {
        timeout: chunkTimeoutMs,
      }),
    );
    const found = Number(reply.headers?.get('Nats-Sequence'));
    return reply.headers?.code === 404 || !(found > sequence) ? null : { sequence: found, data: reply.data };
  }

  async delete(key: string): Promise<void> {
    await this.#guard(key, async () => {
      const found = await this.#description(key);
      if (found !== null) await removeObject(this.#target, found.description, found.sequence);
    });
  }

  /**
   * Removes every object that nobody asked to keep until now, and chunks that belong to none: those that `suspects` had
   * from the look before, and that are not `growing`.
   */
  collect(nowMs: number, growing: ReadonlySet<string>, suspects: ReadonlySet<string>): Promise<Collected> {
    return this.#guard('*', () => collectObjects(this.#target, { nowMs, growing, suspects }));
  }

  #corrupt(key: string, expected: string, actual: string): OperationalError {
    return new OperationalError(
      'OBJECT_CORRUPT',
      `object ${key} in ${this.#name} has SHA-256 ${actual}, not ${expected}: upload it again`,
    );
  }

  #within<T>(ms: number, key: string, work: Promise<T>): Promise<T> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      const fault = new OperationalError('OBJECT_TIMEOUT', `object ${key} in ${this.#name} stopped coming`);
      timer = setTimeout(() => reject(fault), Math.max(1, ms));
    });
    return Promise.race([work, late]).finally(() => clearTimeout(timer));
  }

  async #guard<T>(key: string, action: () => Promise<T>): Promise<T> {
    try {
      return await action();
    } catch (cause) {
      // What the content's own source says is not the store's doing.
      if (cause instanceof OperationalError) throw cause;
      const code = isFull(cause) ? 'BUS_FULL' : 'OBJECT_FAILED';
      throw new OperationalError(code, `object ${key} in ${this.#name}: ${String(cause)}`, { cause });
    }
  }
}
