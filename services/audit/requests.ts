/** audit-read.<tenant>: what a submitter may read. The tenant is the subject's, whatever the body says. */
import { z } from 'zod';
import type { LedgerReader } from '../ledger/store.ts';
import type { AuditPage, AuditRecord } from '../platform/codec.ts';
import { allSchemas, encode } from '../platform/codec.ts';
import type { Bus, Reply, Request } from '../platform/nats/bus.ts';
import type { JobRef } from '../platform/topology.ts';
import { isJobId, isTenant, subjects } from '../platform/topology.ts';
import { jobFilterShape, jobsReply } from './job-pages.ts';
import { logsPage, recordsPage } from './pages.ts';
import { checkpointReply, consistencyReply, proofReply, proofShapes } from './proof-requests.ts';
import { RequestFault } from './request-fault.ts';
import { positionOf, standingReply } from './standing.ts';
import { spansReply } from './trace-pages.ts';
import type { Waiters } from './waiters.ts';

const jobId = z.string().refine(isJobId, 'must be a UUIDv7 in lower case');
const limit = z.int().min(1).max(1000).default(100);
const waitMs = z.int().min(0).max(20_000).default(0);
/** What may be asked. */
export const bodyShape = z.discriminatedUnion('what', [
  z.strictObject({
    what: z.literal('records'),
    after: z.int().min(-1).default(-1),
    jobId: jobId.optional(),
    limit,
    waitMs,
  }),
  z.strictObject({ what: z.literal('logs'), jobId, after: z.int().min(0).default(0), limit, waitMs }),
  z.strictObject({ what: z.literal('jobs'), jobId: jobId.optional(), limit, ...jobFilterShape }),
  z.strictObject({ what: z.literal('spans'), jobId }),
  ...proofShapes,
  /** Which checkpoint covers the record of this ledger sequence. */
  z.strictObject({ what: z.literal('standing'), sequence: z.int().min(0) }),
  /** After which tenant sequence the records of this time begin. */
  z.strictObject({ what: z.literal('position'), sinceMs: z.number().min(0) }),
  /** How an event is decoded: the fingerprint is the 8 bytes after C3 01, in hex. */
  z.strictObject({ what: z.literal('schema'), fingerprint: z.string().regex(/^[0-9a-f]{16}$/) }),
]);
type Body = z.infer<typeof bodyShape>;

/** A request is a few numbers and an id. */
const longestBody = 4096;
/** What a reply needs beside its page. */
const replyOverheadBytes = 8192;
/** Looks again at the latest after this, should a notice be lost. */
const longestPauseMs = 500;
/** A notice of a log chunk can come before the stream has the chunk. */
const noticeHeadStartMs = 20;

export interface ReadParts {
  readonly bus: Pick<Bus, 'nextMessage' | 'listen' | 'maxPayload' | 'identity'>;
  readonly store: LedgerReader;
  readonly waiters: Waiters;
}

/** Wakes those who wait for these records. */
export function wakeReaders(waiters: Waiters, committed: readonly { readonly record: AuditRecord }[]): void {
  if (waiters.isEmpty) return;
  for (const { record } of committed) {
    waiters.wake(recordsKey(record.tenant, undefined));
    waiters.wake(recordsKey(record.tenant, record.jobId));
  }
}

/** Answers one request. Throws RequestFault. */
export async function auditRead(parts: ReadParts, request: Request): Promise<Reply> {
  const tenant = request.subject.split('.')[1] ?? '';
  if (!isTenant(tenant))
    throw new RequestFault('BAD_REQUEST', `${request.subject} names no tenant (a-z 0-9 _ -)`);
  const body = parseBody(request.data);
  switch (body.what) {
    case 'records':
      return pageReply(await records(parts, tenant, body));
    case 'logs':
      return pageReply(await logs(parts, { tenant, jobId: body.jobId }, body));
    case 'jobs':
      return jsonReply(await jobsReply(parts.store, tenant, body));
    case 'spans':
      return jsonReply(await spansReply(parts.store, { tenant, jobId: body.jobId }));
    case 'proof':
      return jsonReply(await proofReply(parts.store, { tenant, jobId: body.jobId }, body));
    case 'checkpoint':
      return jsonReply(await checkpointReply(parts.store, body));
    case 'consistency':
      return jsonReply(await consistencyReply(parts.store, body));
    case 'standing':
      return jsonReply(await standingReply(parts.store, body.sequence));
    case 'position':
      return jsonReply({ after: await positionOf(parts.store, tenant, body.sinceMs) });
    case 'schema':
      return schemaReply(body.fingerprint);
  }
}

function parseBody(data: Uint8Array): Body {
  if (data.length > longestBody)
    throw new RequestFault('BAD_REQUEST', `the body has more than ${longestBody} bytes`);
  const parsed = bodyShape.safeParse(parseJson(data));
  if (parsed.success) return parsed.data;
  throw new RequestFault('BAD_REQUEST', `audit-read: ${z.prettifyError(parsed.error)}`);
}

function parseJson(data: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(data).toString('utf8'));
  } catch {
    throw new RequestFault('BAD_REQUEST', 'the body is not JSON; try {"what":"records","after":-1}');
  }
}

function records(
  parts: ReadParts,
  tenant: string,
  body: Extract<Body, { what: 'records' }>,
): Promise<AuditPage> {
  const { after, jobId, limit, waitMs } = body;
  const query = { after, jobId, limit, maxBytes: parts.bus.maxPayload - replyOverheadBytes };
  const read = () => recordsPage(parts.store, tenant, query);
  return poll(parts.waiters, { tenant, key: recordsKey(tenant, jobId), waitMs, read });
}

async function logs(
  parts: ReadParts,
  job: JobRef,
  body: Extract<Body, { what: 'logs' }>,
): Promise<AuditPage> {
  const key = `logs.${job.tenant}.${job.jobId}`;
  const read = () => logsPage(parts.bus, job, body);
  const unlisten =
    body.waitMs === 0 ? undefined : parts.bus.listen(subjects.logsOf(job), () => parts.waiters.wake(key));
  try {
    return await poll(parts.waiters, { tenant: job.tenant, key, waitMs: body.waitMs, read });
  } finally {
    unlisten?.();
  }
}

interface Poll {
  readonly tenant: string;
  readonly key: string;
  readonly waitMs: number;
  readonly read: () => Promise<AuditPage>;
}

/** The page as soon as it has something, else as it is when the time is over. */
async function poll(waiters: Waiters, { tenant, key, waitMs, read }: Poll): Promise<AuditPage> {
  const first = await read();
  if (first.items.length > 0 || waitMs === 0) return first;
  const leave = waiters.enter(tenant);
  const until = performance.now() + waitMs;
  try {
    for (let pauseMs = longestPauseMs; ; ) {
      const leftMs = until - performance.now();
      const ticket = waiters.ticket(key, Math.max(0, Math.min(pauseMs, leftMs)));
      const page = await read();
      if (page.items.length > 0 || leftMs <= 0 || waiters.closed) {
        ticket.cancel();
        return page;
      }
      pauseMs = (await ticket.woken) ? noticeHeadStartMs : longestPauseMs;
    }
  } finally {
    leave();
  }
}

/** Tenants have no JetStream, so they do not read the bucket `schemas`. */
function schemaReply(fingerprint: string): Reply {
  const schema = allSchemas().find(({ key }) => key === fingerprint);
  if (schema === undefined)
    throw new RequestFault('NOT_FOUND', `no schema has the fingerprint ${fingerprint}`);
  return { data: Buffer.from(schema.text), headers: {} };
}

const recordsKey = (tenant: string, jobId: string | undefined): string => `records.${tenant}.${jobId ?? '*'}`;

const pageReply = (page: AuditPage): Reply => ({ data: encode('AuditPage', page), headers: {} });
const jsonReply = (value: unknown): Reply => ({ data: Buffer.from(JSON.stringify(value)), headers: {} });
