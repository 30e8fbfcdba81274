/** The thread of signature-check.ts: verdicts on the checks of one message, a byte each, in their order. */
import { parentPort } from 'node:worker_threads';
import sodium from 'sodium-native';
import type { CheckMessage } from './signature-check.ts';
import { checkHeaderBytes, signatureBytes } from './signature-check.ts';

/** By their numbers. A keyring changes rarely and has two keys a service at most, so none is forgotten. */
const keys: Uint8Array[] = [];

parentPort?.on('message', (message: CheckMessage) => {
  const verdicts = verdictsOn(message);
  parentPort?.postMessage(verdicts, [verdicts.buffer]);
});

function verdictsOn({ newKeys, checks, bytes }: CheckMessage): Uint8Array<ArrayBuffer> {
  keys.push(...newKeys);
  const view = new DataView(bytes.buffer);
  const verdicts = new Uint8Array(checks);
  let at = 0;
  for (let index = 0; index < checks; index++) {
    const key = keys[view.getUint32(at)];
    const signatureAt = at + checkHeaderBytes;
    const signedAt = signatureAt + signatureBytes;
    at = signedAt + view.getUint32(at + 4);
    const isValid =
      key !== undefined &&
      sodium.crypto_sign_verify_detached(
        bytes.subarray(signatureAt, signedAt),
        bytes.subarray(signedAt, at),
        key,
      );
    verdicts[index] = isValid ? 1 : 0;
  }
  return verdicts;
}
