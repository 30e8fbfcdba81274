/** What the query API takes and gives, once: requests are checked by it, and the OpenAPI document is made of it. */
import { z } from 'zod';
import { isJobId, isTenant } from '../../platform/topology.ts';

export const mostItems = 1000;

/** A number is written in digits: an empty value is no 0, and 1e2 no 100. */
function inDigits(text: unknown, context: z.core.$RefinementCtx): unknown {
  if (typeof text === 'string' && /^-?\d+$/.test(text)) return Number(text);
  const isEmpty = text === '';
  context.addIssue(
    isEmpty ? 'is empty: leave it out, or give a number' : 'must be one whole number, in digits',
  );
  return z.NEVER;
}
const wholeNumber = (least: number, most = Number.MAX_SAFE_INTEGER) =>
  z.preprocess(inDigits, z.int().min(least).max(most));
const tenant = z.string().refine(isTenant, 'must be a tenant').describe('a tenant: a-z 0-9 _ -');
const jobId = z.string().refine(isJobId, 'must be a UUIDv7 in lower case').describe('UUIDv7 of the job');
const digest = z.string().regex(/^[0-9a-f]{64}$/, 'must be 64 hexadecimal digits in lower case');
const hash = z.string().describe('hex');
const bytes = z.string().describe('Base64');
const micros = z.number().describe('microseconds since 1970');
const millis = z.number().describe('milliseconds since 1970');
const instant = z.iso
  .datetime({ error: 'must be a time like 2027-01-31T12:00:00Z' })
  .transform((text) => Date.parse(text));
const limit = wholeNumber(1, mostItems).default(100).describe('most items of a page');

export const ofTenant = z.strictObject({ tenant });
export const ofJob = z.strictObject({ tenant, jobId });
export const nothing = z.strictObject({});

export const jobsQuery = z.strictObject({
  tenant: tenant.optional().describe('a token of a tenant sees its own jobs only'),
  since: instant.optional().describe('submitted at or after'),
  until: instant.optional().describe('submitted before'),
  state: z
    .enum(['submitted', 'verified', 'routed', 'started', 'finished', 'rejected', 'cancelled'])
    .optional(),
  outcome: z.string().min(1).max(64).optional().describe('how a finished job ended, e.g. memory-exceeded'),
  runtime: z.string().min(1).max(64).optional(),
  keyId: digest.optional().describe('signed by this key'),
  plugin: z.string().min(1).max(512).optional().describe('name, as signed'),
  pluginSha256: digest.optional(),
  before: wholeNumber(0).optional().describe('`next` of the page before'),
  limit,
});
export const recordsQuery = z.strictObject({
  after: wholeNumber(-1)
    .default(-1)
    .describe("number of the tenant's record after which the page begins; `next` of the page before"),
  limit,
});
export const proofQuery = z.strictObject({
  payloads: z.enum(['true', 'false']).default('true').describe('whether the events themselves are in it'),
});
export const checkpointsQuery = z.strictObject({
  covering: wholeNumber(0).default(0).describe('only those of at least so many records'),
  limit,
});

export const consistencyQuery = z.strictObject({
  older: wholeNumber(1).describe('records of the smaller tree'),
  newer: wholeNumber(1).describe('records of the larger one'),
});

export const head = z.object({
  size: z.number().describe('records in the ledger'),
  lastLeafHash: hash,
  recordedAt: micros,
});
export const job = z.object({
  tenant: z.string(),
  jobId: z.string(),
  state: z.string().nullable(),
  plugin: z.string().nullable(),
  pluginSha256: z.string().nullable(),
  keyIds: z.array(z.string()),
  runtime: z.string().nullable(),
  outcome: z.string().nullable(),
  reason: z.string().nullable(),
  submittedAtMs: millis.nullable(),
  updatedAtMs: millis,
  traceId: z.string().nullable(),
  position: z.number().describe('ledger sequence of its first record'),
});
const next = z.number().nullable().describe('begin the next page with it; null at the end');
export const jobPage = z.object({ jobs: z.array(job), next });

export const record = z.object({
  sequence: z.number().describe('ledger sequence: counted over all tenants'),
  tenantSequence: z.number().describe('number of the record, counted by its tenant'),
  recordedAt: micros,
  tenant: z.string(),
  jobId: z.string(),
  kind: z.string(),
  subject: z.string(),
  eventId: z.string(),
  signer: z.string(),
  signature: bytes.nullable(),
  traceparent: z.string().nullable(),
  payload: bytes
    .nullable()
    .describe('the event, Avro single-object encoding, Base64; null once it is erased'),
  payloadSalt: bytes,
  payloadHash: hash,
  previousLeafHash: hash,
  leafHash: hash,
  event: z
    .object({ name: z.string(), value: z.record(z.string(), z.unknown()) })
    .nullable()
    .describe('the event decoded; null where it was erased or cannot be decoded'),
});
export const recordPage = z.object({ records: z.array(record), next });

export const checkpoint = z.object({
  treeSize: z.number(),
  rootHash: hash,
  at: micros,
  note: z.string().describe('the signed note (C2SP tlog-checkpoint)'),
});
export const checkpointPage = z.object({ checkpoints: z.array(checkpoint) });
export const consistency = z.object({
  consistency: z.array(bytes).describe('hashes of the proof (RFC 9162, 2.1.4)'),
});
export const standing = z.object({
  size: z.number(),
  covering: checkpoint.nullable().describe('the smallest that covers the last of these records'),
  newest: checkpoint.nullable(),
});
export const jobRecord = z.object({
  job,
  records: z.array(record),
  more: z.boolean().describe('whether there may be others: read them by pages'),
  standing,
});
export const spans = z.object({ spans: z.array(z.record(z.string(), z.unknown())) });
export const proof = z.record(z.string(), z.unknown()).describe('a file for `sandbus audit verify --proof`');

export const problem = z.object({
  type: z.string(),
  title: z.string(),
  status: z.number(),
  code: z.string(),
  detail: z.string(),
});
