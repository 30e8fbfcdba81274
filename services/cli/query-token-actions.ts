/** What `sandbus query-token add | list | remove` do. */
import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { UsageError } from '../platform/errors.ts';
import type { QueryToken } from '../platform/query-tokens.ts';
import { encodeTokens, newToken, parseTokens } from '../platform/query-tokens.ts';
import { loadQueryTokensFile } from './config.ts';
import { exitCode } from './exit-codes.ts';
import { readIfThere, withLock, writeAtomically } from './files.ts';
import { print, printed, printJson, say } from './output.ts';
import { formatTime } from './quantities.ts';
import type { TokenOptions } from './query-tokens.ts';
import { renderTable } from './table.ts';

export async function add(name: string, options: TokenOptions): Promise<number> {
  const { tenant, operator, expires } = options;
  if ((tenant === undefined) === (operator === undefined))
    throw new UsageError('say what the token sees: --tenant NAME, or --operator for every tenant');
  const about = { name, tenant: tenant ?? null, createdMs: Date.now(), expiresMs: expires ?? null };
  const made = newToken(about);
  const file = await changing((tokens) => {
    if (tokens.some((token) => token.name === name))
      throw new UsageError(`there is a token ${name}; remove it first, or take another name`);
    return [...tokens, made.token];
  });
  if (options.json) printJson({ ...viewOf(made.token), token: made.secret });
  else {
    await printed(`${made.secret}\n`);
    say(`sandbus: shown this once; its digest is in ${file}`);
  }
  return exitCode('ok');
}

export async function list(options: TokenOptions): Promise<number> {
  const tokens = await read(loadQueryTokensFile());
  if (options.json) for (const token of tokens) printJson(viewOf(token));
  else if (tokens.length === 0) say('there are no tokens: nobody may query');
  else print(tokenTable(tokens));
  return exitCode('ok');
}

function tokenTable(tokens: readonly QueryToken[]): string {
  const columns = ['NAME', 'SEES', 'MADE (UTC)', 'EXPIRES (UTC)'].map((title) => ({ title }));
  const rows = tokens.map(({ name, tenant, createdMs, expiresMs }) => [
    name,
    tenant === null ? 'every tenant' : `tenant ${tenant}`,
    formatTime(createdMs),
    expiresMs === null ? 'never' : `${formatTime(expiresMs)}${expiresMs <= Date.now() ? ' (over)' : ''}`,
  ]);
  return renderTable(columns, rows);
}

export async function remove(name: string, options: TokenOptions): Promise<number> {
  await changing((tokens) => {
    const left = tokens.filter((token) => token.name !== name);
    if (left.length === tokens.length)
      throw new UsageError(`there is no token ${name}; \`sandbus query-token list\``, exitCode('notFound'));
    return left;
  });
  if (options.json) printJson({ removed: name });
  else print(`token ${name} is good for nothing from now on\n`);
  return exitCode('ok');
}

const viewOf = ({ sha256: _digest, ...view }: QueryToken) => view;

/** Returns the file's path. */
async function changing(change: (tokens: readonly QueryToken[]) => readonly QueryToken[]): Promise<string> {
  const file = loadQueryTokensFile();
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  await withLock(file, async () => {
    const tokens = change(await read(file));
    // Digests let nobody in; the service may run as another user.
    await writeAtomically(file, encodeTokens(tokens), 0o644);
  });
  return file;
}

async function read(file: string): Promise<readonly QueryToken[]> {
  const bytes = await readIfThere(file, 'tokens file');
  if (bytes === null) return [];
  const parsed = parseTokens(bytes);
  if (parsed.ok) return parsed.value;
  throw new UsageError(`${file} is no file of query tokens: ${parsed.detail}`);
}
