/** Whatever goes wrong is answered by a problem document, also what fastify and Node would answer by themselves. */
import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { messageOf, OperationalError } from '../../platform/errors.ts';
import type { Logger } from '../../platform/log.ts';
import { mediaType, Problem, problemDocument, problemOf } from './problems.ts';

/** Where the API is described. */
export const documentPath = '/openapi.json';

export function answerFaults(app: FastifyInstance, log: Logger): void {
  app.setNotFoundHandler((request) => {
    throw new Problem(
      404,
      'NOT_FOUND',
      `there is no ${request.method} ${request.url.split('?')[0]}; see ${documentPath}`,
    );
  });
  app.setErrorHandler((error, request, reply) =>
    answer(
      reply,
      asProblem(error, () => logBug(log, request, error)),
    ),
  );
}

/**
 * For what is no path at all (`%` and no two digits, a name that is too long), which fastify finds before any hook.
 * `admit` says who asks, and comes first here too.
 */
export function answerBadUrl(log: Logger, admit: (request: FastifyRequest, reply: FastifyReply) => void) {
  return (error: Error, request: FastifyRequest, reply: FastifyReply): void => {
    let fault: unknown = error;
    try {
      admit(request, reply);
    } catch (refusal) {
      fault = refusal;
    }
    answer(
      reply,
      asProblem(fault, () => logBug(log, request, fault)),
    );
  };
}

/** For what is no HTTP, or comes too slowly: nothing was parsed, so that the answer is written as it is. */
export function answerBadRequest(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || socket.destroyed) return;
  const isLate = error.code === 'ERR_HTTP_REQUEST_TIMEOUT';
  const status = isLate ? 408 : error.code === 'HPE_HEADER_OVERFLOW' ? 431 : 400;
  const detail = isLate
    ? 'the request did not come in time'
    : `no request that can be read: ${error.message}`;
  const body = JSON.stringify(problemDocument(new Problem(status, 'BAD_REQUEST', detail)));
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    `content-type: ${mediaType}`,
    `content-length: ${Buffer.byteLength(body)}`,
    'cache-control: no-store',
    'connection: close',
  ];
  if (socket.writable) socket.write(`${head.join('\r\n')}\r\n\r\n${body}`);
  socket.destroy(error);
}

function answer(reply: FastifyReply, problem: Problem): FastifyReply {
  if (problem.status === 401) reply.header('www-authenticate', 'Bearer realm="sandbus"');
  if (problem.status === 405) reply.header('allow', 'GET, HEAD');
  if (problem.status === 503) reply.header('retry-after', '1');
  return reply
    .status(problem.status)
    .header('content-type', mediaType)
    .send(JSON.stringify(problemDocument(problem)));
}

function asProblem(error: unknown, onBug: () => void): Problem {
  if (error instanceof Problem) return error;
  if (error instanceof OperationalError) return problemOf(error);
  const status = error instanceof Error && 'statusCode' in error ? Number(error.statusCode) : 500;
  if (status >= 400 && status < 500) return new Problem(status, 'BAD_REQUEST', messageOf(error));
  onBug();
  return new Problem(500, 'INTERNAL', 'the audit service failed on this query; its log says how');
}

function logBug(log: Logger, request: FastifyRequest, error: unknown): void {
  log.error({ path: request.url.split('?')[0], error: messageOf(error) }, 'a query failed');
}
