/**
 * A file that is read again when it changes, for the trust store and the policy. A damaged new version leaves the old
 * one in force and says so loudly; no version at all is null, and whoever asks must then refuse everything.
 */
import { readFileSync, statSync } from 'node:fs';
import { messageOf } from './errors.ts';
import type { Logger } from './log.ts';

/** A parsed value, or why the bytes are none. */
export type Parsed<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly detail: string };

export class WatchedFile<T> {
  readonly #file: string;
  readonly #parse: (bytes: Uint8Array) => Parsed<T>;
  readonly #log: Logger;
  #stamp = '';
  #value: T | null = null;

  constructor(file: string, parse: (bytes: Uint8Array) => Parsed<T>, log: Logger) {
    this.#file = file;
    this.#parse = parse;
    this.#log = log;
  }

  /** The newest good version. Looks at the file's times and size on each call (a few µs), reads it when they changed. */
  current(): T | null {
    const stamp = this.#fileStamp();
    if (stamp !== this.#stamp) {
      this.#stamp = stamp;
      this.#reload();
    }
    return this.#value;
  }

  #fileStamp(): string {
    const stat = statSync(this.#file, { bigint: true, throwIfNoEntry: false });
    return stat === undefined
      ? 'missing'
      : `${stat.dev}:${stat.ino}:${stat.size}:${stat.mtimeNs}:${stat.ctimeNs}`;
  }

  #reload(): void {
    const parsed = this.#read();
    if (parsed.ok) {
      this.#value = parsed.value;
      this.#log.info({ file: this.#file }, 'loaded');
    } else {
      const inForce =
        this.#value === null ? 'there is none in force: everything is refused' : 'the old one stays in force';
      this.#log.error({ file: this.#file, detail: parsed.detail }, `cannot be used; ${inForce}`);
    }
  }

  #read(): Parsed<T> {
    try {
      return this.#parse(readFileSync(this.#file));
    } catch (error) {
      return { ok: false, detail: messageOf(error) };
    }
  }
}
