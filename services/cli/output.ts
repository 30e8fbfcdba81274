/** What a command says: results on standard output, everything else on standard error. */
import { once } from 'node:events';
import { getSystemErrorMessage } from 'node:util';
import { messageOf, OperationalError } from '../platform/errors.ts';
import { plainJson } from '../platform/plain-json.ts';
import { printable } from './table.ts';

/** One JSON value, one line. Bytes become Base64, digests hex. */
export function printJson(value: unknown): void {
  process.stdout.write(`${toJson(value)}\n`);
}

export function toJson(value: unknown): string {
  return JSON.stringify(plainJson(value));
}

export function print(text: string): void {
  process.stdout.write(text);
}

/** Prints, and resolves when all of it is written. Throws OperationalError OUTPUT_FAILED. */
export function printed(text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    process.stdout.write(text, (error) => {
      if (error == null) resolve();
      else reject(new OperationalError('OUTPUT_FAILED', outputFault('output', error)));
    });
  });
}

/** Why the standard output, or error, takes nothing, in a sentence. */
export function outputFault(stream: 'output' | 'error', cause: NodeJS.ErrnoException): string {
  const why = cause.errno === undefined ? messageOf(cause) : getSystemErrorMessage(cause.errno);
  return `cannot write standard ${stream}: ${why}`;
}

/** A sentence for the person at the terminal. */
export function say(text: string): void {
  process.stderr.write(`${text.split('\n').map(printable).join('\n')}\n`);
}

/** Shows how far long work has come, in one line of the terminal; in a pipe nothing of it. */
export function showProgress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\u001b[K${printable(text)}`);
}

export function endProgress(): void {
  if (process.stderr.isTTY) process.stderr.write('\r\u001b[K');
}

/** Writes bytes exactly, and waits while the reader is slow. */
export async function writeBytes(stream: NodeJS.WriteStream, bytes: Uint8Array): Promise<void> {
  if (!stream.write(bytes)) await once(stream, 'drain');
}
