/** Values with bytes in them, as JSON: bytes are Base64, hashes (by the name of their field) hex. */
export function plainJson(value: unknown, key = ''): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value).toString(/Hash$/.test(key) ? 'hex' : 'base64');
  if (Array.isArray(value)) return value.map((item) => plainJson(item));
  if (value !== null && typeof value === 'object')
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, plainJson(inner, name)]));
  return value;
}
