/** Connections to PostgreSQL: how values come and go, and which failures may pass. */
import type { ClientConfig, QueryResultRow } from 'pg';
import pg from 'pg';
import { messageOf, OperationalError, UsageError } from '../../platform/errors.ts';
import type { Cell, Row } from '../rows.ts';
import { escaped, unescaped } from './text.ts';

/** All tables are in a schema of their own, so that a database may be shared. */
export const schema = 'sandbus';

const connectMs = 5_000;
/** Questions on their way at one time. */
const mostConnections = 8;

export type Value = Cell | readonly Cell[];

/** Whatever takes a query: a pool, or the one connection of a writer. */
export interface Queryable {
  query<R extends QueryResultRow>(config: {
    text: string;
    values: unknown[];
    name?: string;
  }): Promise<{
    rows: R[];
    rowCount: number | null;
  }>;
}

const [oidOfBigint, oidOfText] = [20, 25];

function configOf(url: string): ClientConfig {
  return {
    connectionString: url,
    application_name: 'sandbus-audit',
    options: `-c search_path=${schema}`,
    connectionTimeoutMillis: connectMs,
    keepAlive: true,
    types: {
      getTypeParser: ((oid: number, format?: 'text' | 'binary') => {
        if (oid === oidOfBigint) return safeNumber;
        return oid === oidOfText ? unescaped : pg.types.getTypeParser(oid, format as 'text');
      }) as typeof pg.types.getTypeParser,
    },
  };
}

/** A bigint that is no exact number in JavaScript is an error, not a wrong number. */
function safeNumber(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value)) throw new Error(`the ledger has the number ${text}, beyond 2^53 - 1`);
  return value;
}

export function poolOf(url: string): pg.Pool {
  const pool = new pg.Pool({ ...configOf(url), max: mostConnections, allowExitOnIdle: true });
  // Of connections that nobody is using: whoever asks next hears of it.
  pool.on('error', () => undefined);
  return pool;
}

/** A connection of its own. `onLost` is told once, when it has ended by itself. */
export async function connectionTo(url: string, onLost: (error: Error) => void): Promise<pg.Client> {
  const client = new pg.Client(configOf(url));
  client.on('error', onLost);
  await guarded(() => client.connect());
  return client;
}

/** Every value is a parameter; the text is a constant of this folder. */
export async function query(to: Queryable, text: string, values: readonly Value[] = []): Promise<Row[]> {
  return (await run(to, text, values)).rows;
}

/** Returns how many rows it changed. */
export async function change(to: Queryable, text: string, values: readonly Value[] = []): Promise<number> {
  return (await run(to, text, values)).rowCount ?? 0;
}

function run(to: Queryable, text: string, values: readonly Value[]) {
  return guarded(() => to.query<Row>({ text, values: values.map(parameter) }));
}

function parameter(value: Value): unknown {
  if (typeof value === 'string') return escaped(value);
  // A view of bytes would be taken for an array.
  if (value instanceof Uint8Array) return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  return Array.isArray(value) ? value.map((one) => parameter(one)) : value;
}

/** Classes of SQLSTATE (postgresql.org/docs/current/errcodes-appendix.html) that can pass by themselves or by an operator. */
const passing: ReadonlyMap<string, string> = new Map([
  ['08', 'the connection failed'],
  ['25', 'it takes no writes: it is a standby, or is being failed over'],
  ['40', 'it asks to try again'],
  ['53', 'it is out of disk, memory or connections'],
  ['55', 'something is locked'],
  ['57', 'it is shutting down or starting'],
  ['58', 'its disk fails'],
]);

/** Throws OperationalError LEDGER_UNAVAILABLE for what can pass, UsageError for what the operator must mend. */
export async function guarded<T>(action: () => Promise<T>): Promise<T> {
  try {
    return await action();
  } catch (error) {
    throw failure(error);
  }
}

export function failure(error: unknown): unknown {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  const isSqlState = /^[0-9A-Z]{5}$/.test(code);
  if (isSqlState && /^(28|3D)/.test(code))
    return new UsageError(`PostgreSQL refuses SANDBUS_LEDGER_URL: ${messageOf(error)}`);
  const hint = isSqlState ? passing.get(code.slice(0, 2)) : socketHint(error, code);
  if (hint === undefined) return error;
  const message = `the ledger's database (PostgreSQL): ${messageOf(error)}; ${hint}`;
  return new OperationalError('LEDGER_UNAVAILABLE', message, { cause: error });
}

/** Errors of sockets have no SQLSTATE, those of the client library nothing but a text. */
function socketHint(error: unknown, code: string): string | undefined {
  const isOfSocket = /^(E[A-Z]{4,}|UND_ERR_.*)$/.test(code);
  const isOfClient = /connection terminated|not queryable|timeout exceeded|client was closed/i.test(
    messageOf(error),
  );
  return isOfSocket || isOfClient ? 'it cannot be reached' : undefined;
}
