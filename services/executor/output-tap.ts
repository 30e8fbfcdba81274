/** What an executor sees of one output stream as it passes: its first bytes, its length and its digest. */
import { createHash } from 'node:crypto';
import type { SeenOutput } from './finished.ts';
import { inlineOutputBytes } from './finished.ts';

export class OutputTap {
  readonly #hash = createHash('sha256');
  readonly #head: Uint8Array[] = [];
  #headBytes = 0;
  #bytes = 0;

  see(chunk: Uint8Array): void {
    this.#hash.update(chunk);
    this.#bytes += chunk.length;
    const room = inlineOutputBytes - this.#headBytes;
    if (room <= 0) return;
    // A copy: a slice would keep the whole read buffer alive for as long as the job runs.
    const kept = Uint8Array.from(chunk.subarray(0, room));
    this.#head.push(kept);
    this.#headBytes += kept.length;
  }

  /** Ends the tap. */
  seen(): SeenOutput {
    return { head: Buffer.concat(this.#head), bytes: this.#bytes, sha256: this.#hash.digest('hex') };
  }
}
