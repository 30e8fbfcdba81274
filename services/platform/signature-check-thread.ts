/** The thread of signature-check.ts: verdicts on the checks of one message, a byte each, in their order. */
import type { KeyObject } from 'node:crypto';
import { verify } from 'node:crypto';
import { parentPort } from 'node:worker_threads';
import type { CheckMessage } from './signature-check.ts';
import { signatureBytes } from './signature-check.ts';

/** By their numbers. A keyring changes rarely and has two keys a service at most, so none is forgotten. */
const keys: KeyObject[] = [];

parentPort?.on('message', (message: CheckMessage) => parentPort?.postMessage(verdictsOn(message)));

function verdictsOn({ newKeys, keyOf, lengths, bytes }: CheckMessage): Uint8Array {
  keys.push(...newKeys);
  let at = 0;
  return Uint8Array.from(lengths, (length, index) => {
    const key = keys[keyOf[index] ?? -1];
    const signature = bytes.subarray(at, at + signatureBytes);
    const signed = bytes.subarray(at + signatureBytes, at + signatureBytes + length);
    at += signatureBytes + length;
    return key !== undefined && verify(null, signed, key, signature) ? 1 : 0;
  });
}
