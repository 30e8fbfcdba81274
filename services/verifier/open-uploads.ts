/**
 * What tenants have uploaded, for their quotas: uploads that have begun and not ended, as they stand in KV, and what the
 * store keeps. Those with which nobody goes on are forgotten with their chunks.
 */
import type { Clock } from '../platform/clock.ts';
import { messageOf } from '../platform/errors.ts';
import type { Logger } from '../platform/log.ts';
import type { KvBucket } from '../platform/nats/kv.ts';
import { parseProgress } from './upload-progress.ts';
import type { UploadParts } from './uploads.ts';
import { forgetUpload } from './uploads.ts';

export interface UploadQuota {
  /** Uploads of one tenant that are open at one time. */
  readonly uploads: number;
  /** Their sizes together, as they were announced. */
  readonly bytes: number;
  /** What the store may keep of one tenant. */
  readonly storedBytes: number;
}

/** Below the time after which KV itself forgets an upload, and with it where its parts are. */
const abandonedMs = 6 * 3_600_000;
const collectMs = 10 * 60_000;

interface OpenUpload {
  readonly id: string;
  readonly size: number;
  readonly touchedAtMs: number;
}

export class OpenUploads {
  readonly #open = new Map<string, OpenUpload>();
  /** Key of the object → its size. */
  #stored = new Map<string, number>();
  readonly #quota: UploadQuota;
  readonly #clock: Clock;
  #stop: () => void = () => undefined;

  private constructor(quota: UploadQuota, clock: Clock) {
    this.#quota = quota;
    this.#clock = clock;
  }

  static async watch(bucket: KvBucket, quota: UploadQuota, clock: Clock): Promise<OpenUploads> {
    const uploads = new OpenUploads(quota, clock);
    uploads.#stop = await bucket.watch((key, value) => {
      const progress = value === null ? null : parseProgress(value.value);
      if (progress === null) uploads.#open.delete(key);
      else uploads.#open.set(key, progress);
    });
    return uploads;
  }

  /** Why the tenant may not begin another upload of this size; null when it may. */
  refuse(tenant: string, size: number): string | null {
    const isOwn = ([key]: [string, unknown]) => key.startsWith(`${tenant}.`);
    const own = [...this.#open].filter(isOwn).map(([, upload]) => upload);
    if (own.length >= this.#quota.uploads)
      return `${own.length} uploads have begun and not ended, at most ${this.#quota.uploads}: finish one first`;
    const bytes = own.reduce((sum, upload) => sum + upload.size, size);
    if (bytes > this.#quota.bytes)
      return `this and the uploads that have begun are ${bytes} bytes, at most ${this.#quota.bytes}: finish one first`;
    const stored = [...this.#stored].filter(isOwn).reduce((sum, [, one]) => sum + one, bytes);
    return stored <= this.#quota.storedBytes
      ? null
      : `with this, tenant ${tenant} has ${stored} bytes in the store, at most ${this.#quota.storedBytes}: what no job needs is removed a day after its last use`;
  }

  /** What the store has, as it was looked through. */
  noteAllStored(kept: readonly { readonly name: string; readonly size: number }[]): void {
    this.#stored = new Map(kept.map(({ name, size }) => [name, size]));
  }

  /** What has just come. */
  noteStored(key: string, size: number): void {
    this.#stored.set(key, size);
  }

  /** Ids of the objects that grow. */
  get growing(): ReadonlySet<string> {
    return new Set([...this.#open.values()].map(({ id }) => id));
  }

  /** Forgets those with which nobody has gone on for hours. Returns how many. */
  async collect(parts: UploadParts): Promise<number> {
    const before = this.#clock.nowMs() - abandonedMs;
    const abandoned = [...this.#open].filter(([, { touchedAtMs }]) => touchedAtMs < before);
    for (const [key] of abandoned) {
      await forgetUpload(parts, key);
      this.#open.delete(key);
    }
    return abandoned.length;
  }

  /** Collects from time to time, until it is stopped. */
  keepCollecting(parts: UploadParts, log: Logger): void {
    const stopWatch = this.#stop;
    const collect = () =>
      void this.collect(parts).then(
        (count) => count > 0 && log.info({ count }, 'abandoned uploads forgotten'),
        (error: unknown) => log.warn({ error: messageOf(error) }, 'abandoned uploads could not be forgotten'),
      );
    const timer = setInterval(collect, collectMs);
    collect();
    this.#stop = () => {
      clearInterval(timer);
      stopWatch();
    };
  }

  stop(): void {
    this.#stop();
  }
}
