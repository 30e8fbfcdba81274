/** The routes of the query API: what each takes, gives, and who may ask. */
import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { consistencyBetween } from '../../ledger/prove.ts';
import type { LedgerReader } from '../../ledger/store.ts';
import type { QueryToken } from '../../platform/query-tokens.ts';
import {
  checkpointsAnswer,
  headAnswer,
  jobAnswer,
  jobsAnswer,
  newestCheckpointAnswer,
  proofAnswer,
  recordsAnswer,
  spansAnswer,
} from './answers.ts';
import { Problem } from './problems.ts';
import * as shapes from './shapes.ts';

interface Route<P extends z.ZodType, Q extends z.ZodType> {
  readonly path: string;
  readonly summary: string;
  readonly params: P;
  readonly query: Q;
  readonly reply: z.ZodType;
  readonly answer: (asked: { params: z.infer<P>; query: z.infer<Q>; token: QueryToken }) => Promise<unknown>;
}

/** `tokenOf` is who asks, as it was checked before. */
export function addRoutes(
  app: FastifyInstance,
  store: LedgerReader,
  tokenOf: (request: object) => QueryToken,
): void {
  const add = <P extends z.ZodType, Q extends z.ZodType>(route: Route<P, Q>) => {
    const { path, summary, params, query, reply } = route;
    const schema = { summary, params, querystring: query, response: { 200: reply, default: shapes.problem } };
    app.get(path, { schema }, async (request) => {
      const asked = {
        params: parsed(params, request.params),
        query: parsed(query, request.query),
        token: tokenOf(request),
      };
      const { tenant } = asked.params as { tenant?: string };
      if (tenant !== undefined) mustSee(asked.token, tenant);
      return route.answer(asked);
    });
  };
  const of = { ofTenant: shapes.ofTenant, ofJob: shapes.ofJob, nothing: shapes.nothing };

  add({
    path: '/v1/head',
    summary: 'Where the ledger stands',
    ...{ params: of.nothing, query: of.nothing, reply: shapes.head },
    answer: () => headAnswer(store),
  });
  add({
    path: '/v1/jobs',
    summary: 'Jobs, newest first, by what is known of them',
    ...{ params: of.nothing, query: shapes.jobsQuery, reply: shapes.jobPage },
    answer: ({ query, token }) => {
      if (query.tenant !== undefined) mustSee(token, query.tenant);
      return jobsAnswer(store, { ...query, tenant: query.tenant ?? token.tenant ?? undefined });
    },
  });
  add({
    path: '/v1/tenants/:tenant/records',
    summary: 'Records of a tenant, in order',
    ...{ params: of.ofTenant, query: shapes.recordsQuery, reply: shapes.recordPage },
    answer: ({ params, query }) => recordsAnswer(store, params, query),
  });
  add({
    path: '/v1/tenants/:tenant/jobs/:jobId',
    summary: 'A job with its records, and where they stand in the ledger',
    ...{ params: of.ofJob, query: of.nothing, reply: shapes.jobRecord },
    answer: ({ params }) => jobAnswer(store, params),
  });
  add({
    path: '/v1/tenants/:tenant/jobs/:jobId/records',
    summary: 'Records of a job, in order',
    ...{ params: of.ofJob, query: shapes.recordsQuery, reply: shapes.recordPage },
    answer: ({ params, query }) => recordsAnswer(store, params, query),
  });
  add({
    path: '/v1/tenants/:tenant/jobs/:jobId/spans',
    summary: "Spans of a job's trace, by start",
    ...{ params: of.ofJob, query: of.nothing, reply: shapes.spans },
    answer: ({ params }) => spansAnswer(store, params),
  });
  add({
    path: '/v1/tenants/:tenant/jobs/:jobId/proof',
    summary: 'Proof of all events of a job, for whoever does not trust us',
    ...{ params: of.ofJob, query: shapes.proofQuery, reply: shapes.proof },
    answer: ({ params, query }) => proofAnswer(store, params, query.payloads === 'true'),
  });
  add({
    path: '/v1/checkpoints',
    summary: 'Signed checkpoints, smallest first',
    ...{ params: of.nothing, query: shapes.checkpointsQuery, reply: shapes.checkpointPage },
    answer: ({ query }) => checkpointsAnswer(store, query.covering, query.limit),
  });
  add({
    path: '/v1/checkpoints/newest',
    summary: 'The newest checkpoint',
    ...{ params: of.nothing, query: of.nothing, reply: shapes.checkpoint },
    answer: () => newestCheckpointAnswer(store),
  });
  add({
    path: '/v1/consistency',
    summary: 'Proof that one checkpoint goes on from another, for any two',
    ...{ params: of.nothing, query: shapes.consistencyQuery, reply: shapes.consistency },
    answer: ({ query }) => consistencyBetween(store, query),
  });
}

/** A tenant's token is good for that tenant; whether another one is there, it does not learn. */
function mustSee(token: QueryToken, tenant: string): void {
  if (token.tenant !== null && token.tenant !== tenant)
    throw new Problem(403, 'FORBIDDEN', `this token is for tenant ${token.tenant}`);
}

function parsed<T extends z.ZodType>(shape: T, value: unknown): z.infer<T> {
  const result = shape.safeParse(value);
  if (result.success) return result.data;
  throw new Problem(400, 'BAD_REQUEST', z.prettifyError(result.error));
}
