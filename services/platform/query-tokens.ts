/**
 * Who may use the query API: bearer tokens (RFC 6750), each of one tenant or of an operator, who sees all. The file holds
 * their digests alone. A token has 256 random bits, so that a plain SHA-256 of it cannot be turned round.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { z } from 'zod';
import { UsageError } from './errors.ts';
import { isTenant } from './topology.ts';
import type { Parsed } from './watched-file.ts';

const tokenShape = z.strictObject({
  /** For people: who has it. */
  name: z
    .string()
    .regex(
      /^[a-zA-Z0-9][a-zA-Z0-9 .@_-]{0,63}$/,
      'must be 1 to 64 letters, digits, spaces and . @ _ -, with a letter or digit first',
    ),
  /** Null is an operator. */
  tenant: z.string().refine(isTenant, 'must be 1 to 63 of a-z, 0-9, _ and -').nullable(),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  createdMs: z.number(),
  /** Null never expires. */
  expiresMs: z.number().nullable(),
});
const fileShape = z.strictObject({ version: z.literal(1), tokens: z.array(tokenShape).max(1000) });

export type QueryToken = Readonly<z.infer<typeof tokenShape>>;

const prefix = 'sandbus-';

/** Throws UsageError for a name or tenant that cannot be. */
export function newToken(about: Pick<QueryToken, 'name' | 'tenant' | 'createdMs' | 'expiresMs'>): {
  secret: string;
  token: QueryToken;
} {
  const secret = `${prefix}${randomBytes(32).toString('base64url')}`;
  const made = tokenShape.safeParse({ ...about, sha256: digestOf(secret).toString('hex') });
  if (made.success) return { secret, token: made.data };
  const faults = made.error.issues.map(({ path, message }) => `${path.join('.')} ${message}`);
  throw new UsageError(`token ${about.name}: ${faults.join('; ')}`);
}

/** Bytes of the file, or why they are none. Two tokens of one name are a fault: which one would be removed? */
export function parseTokens(bytes: Uint8Array): Parsed<readonly QueryToken[]> {
  try {
    const { tokens } = fileShape.parse(JSON.parse(Buffer.from(bytes).toString('utf8')));
    const names = new Set(tokens.map(({ name }) => name));
    return names.size === tokens.length
      ? { ok: true, value: tokens }
      : { ok: false, detail: 'two tokens have one name' };
  } catch (error) {
    const detail = error instanceof z.ZodError ? z.prettifyError(error) : 'it is not JSON';
    return { ok: false, detail };
  }
}

export const encodeTokens = (tokens: readonly QueryToken[]): string =>
  `${JSON.stringify({ version: 1, tokens }, null, 2)}\n`;

/** The token that was presented, or null. Takes as long whichever it is, and whether it is one at all. */
export function findToken(
  tokens: readonly QueryToken[],
  presented: string,
  nowMs: number,
): QueryToken | null {
  const digest = digestOf(presented);
  let found: QueryToken | null = null;
  for (const token of tokens) if (timingSafeEqual(digest, Buffer.from(token.sha256, 'hex'))) found = token;
  return found !== null && (found.expiresMs === null || found.expiresMs > nowMs) ? found : null;
}

const digestOf = (secret: string): Buffer => createHash('sha256').update(secret).digest();
