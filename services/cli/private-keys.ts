/** Private keys, from a file or from a descriptor that the caller has opened, so that a key need never lie on a disk. */
import { fstatSync, readSync } from 'node:fs';
import { realpath, stat } from 'node:fs/promises';
import { messageOf, UsageError } from '../platform/errors.ts';
import type { SigningKey } from '../trust/index.ts';
import { privateKeyFromPem } from '../trust/index.ts';
import { readBytes } from './files.ts';
import { say } from './output.ts';
import { expectValue } from './signing.ts';

const descriptorName = /^fd:(\d{1,6})$/;
const maxKeyBytes = 64 * 1024;

/** Reads a private key from `FILE` or `fd:N`. */
export async function loadPrivateKey(source: string): Promise<SigningKey> {
  const descriptor = descriptorName.exec(source)?.[1];
  const bytes =
    descriptor === undefined
      ? await readBytes(source, 'private key')
      : readDescriptor(Number(descriptor), source);
  const key = expectValue(privateKeyFromPem(Buffer.from(bytes).toString('utf8')), source);
  if (descriptor === undefined) await warnOfReaders(source);
  return key;
}

/** Of a file alone: the mode of a pipe or a device says nothing, and is not for us to change. */
async function warnOfReaders(path: string): Promise<void> {
  const stats = await stat(path);
  if (!stats.isFile() || (stats.mode & 0o077) === 0) return;
  // `/dev/stdin` is another file where the advice is followed.
  const file = await realpath(path).catch(() => path);
  say(`warning: others may read the private key ${file}: run \`chmod 600 ${file}\``);
}

/** Everything up to the end of the descriptor. More than a key can be is refused, so that no wrong one is read for ever. */
function readDescriptor(descriptor: number, source: string): Uint8Array {
  const buffer = Buffer.alloc(maxKeyBytes + 1);
  let length = 0;
  try {
    if (fstatSync(descriptor).isDirectory()) throw new Error('it is a folder');
    for (;;) {
      const count = readSync(descriptor, buffer, length, buffer.length - length, null);
      length += count;
      if (count === 0) break;
      if (length > maxKeyBytes) throw new Error('there is more than a key in it');
    }
    return buffer.subarray(0, length);
  } catch (cause) {
    const example = 'sandbus sign hello.py --key fd:3 3<me.pem';
    throw new UsageError(`cannot read private key ${source}: ${messageOf(cause)}; as in \`${example}\``);
  }
}
