/**
 * The query API: HTTP, read-only, for whoever has a token. It gives what the ledger has and can change nothing: its parts
 * get the reader, and there is no method but GET. The OpenAPI document is served at /openapi.json, to anybody.
 */
import swagger from '@fastify/swagger';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import fastify from 'fastify';
import { z } from 'zod';
import type { LedgerReader } from '../../ledger/store.ts';
import type { Clock } from '../../platform/clock.ts';
import { messageOf, UsageError } from '../../platform/errors.ts';
import type { Logger } from '../../platform/log.ts';
import type { QueryToken } from '../../platform/query-tokens.ts';
import { findToken } from '../../platform/query-tokens.ts';
import { answerBadRequest, answerBadUrl, answerFaults, documentPath } from './faults.ts';
import { mediaType, Problem } from './problems.ts';
import { addRoutes } from './routes.ts';
import { addTiles } from './tiles.ts';

export interface QueryParts {
  readonly store: LedgerReader;
  /** Null while there is no usable file: then nobody has a token. */
  readonly tokens: () => readonly QueryToken[] | null;
  readonly clock: Clock;
  readonly log: Logger;
}

export interface QueryAddress {
  readonly host: string;
  readonly port: number;
}

const requestTimeoutMs = 10_000;
const mostConnections = 256;

/** Serves until it is stopped. Throws UsageError when the address cannot be had. */
export async function serveQueries(
  parts: QueryParts,
  { host, port }: QueryAddress,
): Promise<{ url: string; stop: () => Promise<void> }> {
  const app = await build(parts);
  app.server.maxConnections = mostConnections;
  const url = await app.listen({ host, port }).catch((cause: unknown) => {
    throw new UsageError(`SANDBUS_QUERY_ADDRESS ${host}:${port}: ${messageOf(cause)}`);
  });
  return { url, stop: () => app.close() };
}

async function build(parts: QueryParts): Promise<FastifyInstance> {
  const app = fastify({
    forceCloseConnections: true,
    requestTimeout: requestTimeoutMs,
    // A body is never read.
    bodyLimit: 1,
    routerOptions: { maxParamLength: 256 },
    frameworkErrors: answerBadUrl(parts.log, (request, reply) => receive(parts, request, reply)),
    clientErrorHandler: answerBadRequest,
  });
  // Requests are checked by the schemas themselves, in routes.ts; replies are ours.
  app.setValidatorCompiler(() => () => true);
  app.setSerializerCompiler(() => (value) => JSON.stringify(value));
  await app.register(swagger, { openapi: document, transform: toJsonSchema });
  const callers = new WeakMap<object, QueryToken>();
  app.addHook('onRequest', async (request, reply) => {
    const caller = receive(parts, request, reply);
    if (caller !== null) callers.set(request, caller);
  });
  answerFaults(app, parts.log);
  const tokenOf = (request: object) => callers.get(request) ?? refuse();
  addRoutes(app, parts.store, tokenOf);
  addTiles(app, parts.store, tokenOf);
  app.get(documentPath, { schema: { hide: true } as object }, async () => app.swagger());
  await app.ready();
  return app;
}

/** Before anything is looked at: who asks, and what every reply has. Throws Problem. */
function receive(parts: QueryParts, request: FastifyRequest, reply: FastifyReply): QueryToken | null {
  reply.header('cache-control', 'no-store').header('x-content-type-options', 'nosniff');
  return admit(parts, request);
}

/** Who asks; null for the one thing that is for everybody. Throws Problem. */
function admit(parts: QueryParts, request: FastifyRequest): QueryToken | null {
  if (request.method !== 'GET' && request.method !== 'HEAD')
    throw new Problem(405, 'READ_ONLY', `${request.method} is not possible: this API only reads`);
  if (request.url === documentPath) return null;
  const [, presented] = /^Bearer +([\x21-\x7e]{1,256}) *$/i.exec(request.headers.authorization ?? '') ?? [];
  const tokens = parts.tokens() ?? [];
  return (presented === undefined ? null : findToken(tokens, presented, parts.clock.nowMs())) ?? refuse();
}

function refuse(): never {
  throw new Problem(
    401,
    'UNAUTHORIZED',
    'send a token as `Authorization: Bearer …`; `sandbus query-token add` makes one',
  );
}

const document = {
  openapi: '3.1.0',
  info: {
    title: 'Sandbus queries',
    version: '1',
    description:
      'Jobs, records, spans, proofs and checkpoints of the ledger; for operators, the log as monitors read it (c2sp.org/tlog-tiles). Read-only.',
  },
  components: { securitySchemes: { token: { type: 'http' as const, scheme: 'bearer' } } },
  security: [{ token: [] }],
};

/** The document's JSON Schemas are made of the very shapes that check requests. */
function toJsonSchema({ schema, url }: { schema: unknown; url: string }) {
  const given = (schema ?? {}) as Record<string, unknown>;
  const { params, querystring, response, ...rest } = given;
  return {
    // What is left of a path, with its slashes.
    url: url.replace('*', ':path'),
    schema: {
      ...rest,
      ...(params instanceof z.ZodType ? { params: jsonSchema(params, 'input') } : {}),
      ...(querystring instanceof z.ZodType ? { querystring: jsonSchema(querystring, 'input') } : {}),
      ...(response === undefined ? {} : { response: responses(response as Record<string, z.ZodType>) }),
    },
  };
}

const responses = (byStatus: Record<string, z.ZodType>) =>
  Object.fromEntries(
    Object.entries(byStatus).map(([status, shape]) => {
      const schema = jsonSchema(shape, 'output');
      if (status === '200') return [status, { description: 'found', ...schema }];
      return [status, { description: 'a problem (RFC 9457)', content: { [mediaType]: { schema } } }];
    }),
  );

function jsonSchema(shape: z.ZodType, io: 'input' | 'output') {
  const { $schema: _dialect, ...schema } = z.toJSONSchema(shape, {
    io,
    unrepresentable: 'any',
    // Zod leaves a default out of what a number in digits makes of its text.
    override: ({ zodSchema, jsonSchema }) => {
      if (zodSchema instanceof z.ZodDefault) jsonSchema.default = zodSchema.def.defaultValue;
    },
  });
  return schema;
}
