/** The trust store and the policy of this machine, read again whenever the files change. */
import { readFile, stat } from 'node:fs/promises';
import { messageOf } from '../platform/errors.ts';
import type { Logger } from '../platform/log.ts';
import type { Checked, Policy, Rejection, TrustStore } from '../trust/index.ts';
import { parsePolicy, parseTrustStore, reject } from '../trust/index.ts';

export interface TrustInForce {
  /** Null refuses everything: an executor without a readable store or policy runs nothing. */
  readonly trustStore: TrustStore | null;
  readonly policy: Policy | null;
}

export class TrustFiles {
  readonly #store: WatchedFile<TrustStore>;
  readonly #policy: WatchedFile<Policy>;

  constructor(paths: { trustStore: string; policy: string }, log: Logger) {
    this.#store = new WatchedFile(paths.trustStore, parseTrustStore, log);
    this.#policy = new WatchedFile(paths.policy, parsePolicy, log);
  }

  async inForce(): Promise<TrustInForce> {
    const [trustStore, policy] = await Promise.all([this.#store.current(), this.#policy.current()]);
    return { trustStore, policy };
  }
}

class WatchedFile<T> {
  readonly #path: string;
  readonly #parse: (bytes: Uint8Array) => Checked<T>;
  readonly #log: Logger;
  #version = '';
  #value: T | null = null;
  #reading: Promise<T | null> | null = null;

  constructor(path: string, parse: (bytes: Uint8Array) => Checked<T>, log: Logger) {
    this.#path = path;
    this.#parse = parse;
    this.#log = log;
  }

  current(): Promise<T | null> {
    this.#reading ??= this.#look().finally(() => {
      this.#reading = null;
    });
    return this.#reading;
  }

  async #look(): Promise<T | null> {
    const version = await fileVersion(this.#path);
    if (version === this.#version) return this.#value;
    this.#version = version;
    const read = await this.#read();
    if (!read.ok) this.#log.error({ file: this.#path, reason: read.reason, detail: read.detail }, 'unusable');
    this.#value = read.ok ? read.value : null;
    return this.#value;
  }

  async #read(): Promise<Checked<T>> {
    try {
      return this.#parse(await readFile(this.#path));
    } catch (error) {
      return unreadable(this.#path, error);
    }
  }
}

function unreadable(path: string, error: unknown): Rejection {
  return reject('MALFORMED', `${path} cannot be read: ${messageOf(error)}`);
}

/** Changes with the file: a new inode, size or time. A missing file has a version too. */
async function fileVersion(path: string): Promise<string> {
  const facts = await stat(path, { bigint: true }).catch(() => null);
  return facts === null ? 'missing' : `${facts.dev}:${facts.ino}:${facts.size}:${facts.mtimeNs}:${facts.ctimeNs}`;
}
