/**
 * The three kinds of error that are thrown. (A refusal is the fourth kind of bad news and never thrown: it is an event
 * with a reason code.) Whatever is neither poison nor operational is a bug: it crashes the process, unacked.
 */

/** Something outside failed; trying again may help. Becomes a delayed redelivery. */
export class OperationalError extends Error {
  override readonly name = 'OperationalError';
  readonly code: string;
  /** Delay before the next try, milliseconds. */
  readonly retryMs: number;

  constructor(code: string, message: string, options: { retryMs?: number; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.retryMs = options.retryMs ?? 1000;
  }
}

/** Bytes that no retry will make good. Kept as a dead letter and terminated. */
export class PoisonError extends Error {
  override readonly name = 'PoisonError';
  readonly code: string;

  constructor(code: string, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
  }
}

/** A fault of the person at the keyboard or of the configuration: said in one sentence, without a stack. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
  readonly exitCode: number;

  constructor(message: string, exitCode = 2) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** `error.message`, or the thing itself as text when it is no Error. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
