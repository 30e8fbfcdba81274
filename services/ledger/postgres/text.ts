/**
 * Text that PostgreSQL takes: it refuses U+0000, which a subject or the name of a plugin may have, and one such event
 * must not stop the ledger. Written with a backslash, and read back as it was.
 */
export const escaped = (text: string): string =>
  /[\0\\]/.test(text) ? text.replaceAll('\\', '\\\\').replaceAll('\0', '\\0') : text;

export const unescaped = (text: string): string =>
  text.includes('\\') ? text.replaceAll(/\\(.)/gs, (_, one) => (one === '0' ? '\0' : one)) : text;
