/** The pinned root key: what the configuration trusts before it has read anything else. */
import { readFileSync } from 'node:fs';
import { messageOf } from '../platform/errors.ts';
import type { Checked, PublicKey } from '../trust/index.ts';
import { publicKeyFromText, reject } from '../trust/index.ts';

/** A key as text. Nobody calls a file like that: 43 characters of Base64 and a padding, or a PEM block. */
const keyText = /^(?:[A-Za-z0-9+/]{43}=|-----BEGIN [\s\S]*)$/;

/** Whether the configuration gives the key itself. */
export const isKeyText = (source: string): boolean => keyText.test(source.trim());

/** Reads the pinned root from its file, or from the configuration itself. */
export function readPinnedRoot(source: string): Checked<PublicKey> {
  if (isKeyText(source)) return named('SANDBUS_TRUST_ROOT', publicKeyFromText(source));
  try {
    return named(source, publicKeyFromText(readFileSync(source, 'utf8')));
  } catch (error) {
    return reject('NO_TRUST_STORE', `no root key is pinned: ${messageOf(error)}`);
  }
}

function named(where: string, key: Checked<PublicKey>): Checked<PublicKey> {
  return key.ok ? key : reject('NO_TRUST_STORE', `no root key is pinned: ${where}: ${key.detail}`);
}
