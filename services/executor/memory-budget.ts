/** Memory that this executor may give to its jobs together; who comes first is served first. */
export class MemoryBudget {
  readonly #totalBytes: number;
  #freeBytes: number;
  readonly #waiting: { bytes: number; granted: () => void }[] = [];

  constructor(totalBytes: number) {
    this.#totalBytes = totalBytes;
    this.#freeBytes = totalBytes;
  }

  get totalBytes(): number {
    return this.#totalBytes;
  }

  /** No new work is taken while somebody waits, so that small jobs never starve a large one. */
  get hasRoom(): boolean {
    return this.#freeBytes > 0 && this.#waiting.length === 0;
  }

  /** Waits for `bytes` (never more than there are in all) and returns what gives them back. */
  async reserve(bytes: number): Promise<() => void> {
    const reserved = Math.min(bytes, this.#totalBytes);
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.push({ bytes: reserved, granted: resolve });
    this.#grant();
    await promise;
    return () => {
      this.#freeBytes += reserved;
      this.#grant();
    };
  }

  #grant(): void {
    for (let next = this.#waiting[0]; next !== undefined && next.bytes <= this.#freeBytes; ) {
      this.#waiting.shift();
      this.#freeBytes -= next.bytes;
      next.granted();
      next = this.#waiting[0];
    }
  }
}
