/**
 * The bus as an AsyncAPI 3.0 document, for code generators and for people: every subject, who says it, and the schema of what it
 * carries. Made from the topology and the schemas, so that it says what the services do.
 */
import { stringify } from 'yaml';
import { z } from 'zod';
import { bodyShape } from '../services/audit/requests.ts';
import {
  authors,
  chunkBytes,
  deviceClasses,
  headerNames,
  inlineBytes,
  mostUploadBytes,
  runtimes,
  serviceEventKinds,
  subjects,
  submitterEventKinds,
  tenantRule,
} from '../services/platform/topology.ts';
import type { EventName } from './generated/events.ts';

type Json = Readonly<Record<string, unknown>>;
type Kind = (typeof serviceEventKinds)[number] | (typeof submitterEventKinds)[number];

const token = (name: string): string => `{${name}}`;
const job = { tenant: token('tenant'), jobId: token('jobId') };

const eventOf: Readonly<Record<Kind, EventName>> = {
  submitted: 'JobSubmitted',
  'cancel-requested': 'JobCancelRequested',
  verified: 'JobVerified',
  rejected: 'JobRejected',
  started: 'JobStarted',
  finished: 'JobFinished',
  cancelled: 'JobCancelled',
  superseded: 'JobFinished',
  'dead-lettered': 'JobDeadLettered',
};

const parameters: Readonly<Record<string, Json>> = {
  tenant: { description: `${tenantRule}.` },
  jobId: { description: 'A UUIDv7 (RFC 9562) in lower case, chosen by the submitter.' },
  kind: { description: 'The kind of the job event that was recorded, routed among them.' },
  runtime: { enum: runtimes },
  deviceClass: { enum: deviceClasses },
  stream: { enum: ['stdout', 'stderr'] },
  service: { description: 'The service whose spans they are.' },
  sha256: { description: 'Digest of the whole file, in lower-case hex.' },
};

interface Channel {
  readonly name: string;
  readonly address: string;
  readonly summary: string;
  readonly message: string;
  /** What Sandbus does with it. */
  readonly action: 'send' | 'receive';
  readonly reply?: string;
  /** Whether tenants may use it; the rest is between services. */
  readonly open: boolean;
}

/** By whom: the services that may say it, or else submitters. */
const saidBy = (subject: string): string => `Said by: ${authors.get(subject)?.join(', ') ?? 'submitters'}.`;

const jobChannels = ([...submitterEventKinds, ...serviceEventKinds] as const).map((kind): Channel => {
  const open = (submitterEventKinds as readonly string[]).includes(kind);
  return {
    name: `job-${kind}`,
    address: subjects.job(kind, job),
    summary: `${saidBy(`job.${kind}`)} JetStream.`,
    message: eventOf[kind],
    action: open ? 'receive' : 'send',
    open,
  };
});

const channels: readonly Channel[] = [
  ...jobChannels,
  {
    name: 'work',
    address: subjects.work(
      { runtime: token('runtime') as never, deviceClass: token('deviceClass') as never },
      job,
    ),
    summary: `${saidBy('work')} JetStream; one consumer for each runtime and device class.`,
    message: 'JobRouted',
    action: 'send',
    open: false,
  },
  {
    name: 'log',
    address: subjects.log(job, token('stream') as never),
    summary: `${saidBy('log')} Output while a job runs; kept for a day.`,
    message: 'LogChunk',
    action: 'send',
    open: false,
  },
  {
    name: 'trace',
    address: subjects.trace(token('service')),
    summary: 'Said by: every service. Spans, as OTLP in JSON.',
    message: 'Spans',
    action: 'send',
    open: false,
  },
  {
    name: 'audit',
    address: subjects.audit(job, token('kind')),
    summary: `${saidBy('audit')} Each record as it is committed; subscribe, or read the stream AUDIT.`,
    message: 'AuditRecord',
    action: 'send',
    open: true,
  },
  {
    name: 'audit-checkpoint',
    address: subjects.auditCheckpoint,
    summary: `${saidBy(subjects.auditCheckpoint)} Signed heads of the Merkle tree.`,
    message: 'AuditCheckpoint',
    action: 'send',
    open: true,
  },
  {
    name: 'upload',
    address: subjects.upload(token('tenant'), token('sha256')),
    summary: `Request/reply: a file above ${inlineBytes / 1024} KiB and up to ${mostUploadBytes / 1024 ** 2} MiB, in chunks of at most ${chunkBytes / 1024} KiB; resumable.`,
    message: 'UploadChunk',
    reply: 'UploadProgress',
    action: 'receive',
    open: true,
  },
  {
    name: 'download',
    address: subjects.download(token('tenant'), token('sha256')),
    summary: 'Request/reply: a file that a job left, in chunks.',
    message: 'DownloadRequest',
    reply: 'DownloadChunk',
    action: 'receive',
    open: true,
  },
  {
    name: 'audit-read',
    address: subjects.auditRead(token('tenant')),
    summary: 'Request/reply: records, output, jobs, spans, proofs, checkpoints and schemas.',
    message: 'AuditReadRequest',
    reply: 'AuditReadReply',
    action: 'receive',
    open: true,
  },
];

const header = (description: string): Json => ({ type: 'string', description });
const traceparent = header('W3C trace context of whoever says it.');
const eventHeaders: Json = {
  type: 'object',
  properties: {
    [headerNames.signature]: header(
      'Ed25519 over subject, id and bytes, by the key of the service; see SECURITY.md.',
    ),
    [headerNames.cause]: header('<stream>:<sequence> of the message that caused it.'),
    [headerNames.traceparent]: traceparent,
    'Nats-Msg-Id': header('The id of the event.'),
  },
};
const submissionHeaders: Json = {
  type: 'object',
  properties: {
    [headerNames.traceparent]: traceparent,
    [headerNames.delegatedSpan]: header(
      'Asks the verifier to record the span of the submission under the ids of traceparent.',
    ),
  },
};
const faultHeaders = {
  [headerNames.error]: header('Set where the request was refused: a code; the body is a sentence.'),
};
const chunkHeaders: Json = {
  type: 'object',
  properties: {
    [headerNames.offset]: header('Where the chunk begins, in bytes.'),
    [headerNames.size]: header('Bytes of the whole file.'),
  },
};
const bytes = { contentType: 'application/octet-stream', payload: { type: 'string', format: 'binary' } };

const requestMessages: Readonly<Record<string, Json>> = {
  Spans: {
    contentType: 'application/json',
    payload: { type: 'object', description: 'ExportTraceServiceRequest' },
  },
  UploadChunk: { ...bytes, headers: chunkHeaders },
  UploadProgress: {
    contentType: 'application/json',
    headers: { type: 'object', properties: faultHeaders },
    payload: {
      type: 'object',
      required: ['offset', 'complete'],
      properties: {
        offset: { type: 'integer', description: 'How far it has come: where the next chunk begins.' },
        complete: { type: 'boolean' },
      },
    },
  },
  DownloadRequest: {
    headers: {
      type: 'object',
      properties: { [headerNames.offset]: header('Where to begin, in bytes; 0 unless set.') },
    },
    payload: { type: 'null' },
  },
  DownloadChunk: {
    ...bytes,
    headers: { type: 'object', properties: { ...(chunkHeaders.properties as Json), ...faultHeaders } },
  },
  AuditReadRequest: { contentType: 'application/json', payload: requestSchema() },
  AuditReadReply: {
    summary: 'AuditPage (Avro) for records and logs, the schema itself for schema, JSON for the rest.',
    headers: { type: 'object', properties: faultHeaders },
    payload: avro('AuditPage'),
  },
};

function requestSchema(): Json {
  const { $schema: _, ...shape } = z.toJSONSchema(bodyShape, { target: 'draft-7', io: 'input' });
  return shape;
}

function avro(name: string): Json {
  return {
    schemaFormat: 'application/vnd.apache.avro+json;version=1.9.0',
    schema: { $ref: `./${name}.avsc` },
  };
}

/** The document as YAML. */
export function asyncApi(version: string): string {
  const document = {
    asyncapi: '3.0.0',
    info: {
      title: 'Sandbus',
      version,
      license: { name: 'Apache-2.0' },
      description:
        'Bodies are Avro in single-object encoding: C3 01, the fingerprint of the schema (8 bytes), the body. The KV bucket ' +
        '`schemas`, and `audit-read`, have every schema under its fingerprint in hex, old versions too. Channels with the tag ' +
        '`tenant` are for submitters; the others are between the services.',
    },
    defaultContentType: 'avro/binary',
    servers: {
      local: { host: '127.0.0.1:4222', protocol: 'nats', description: 'What `sandbus up` starts.' },
    },
    channels: Object.fromEntries(channels.flatMap(channelsOf)),
    operations: Object.fromEntries(channels.map((channel) => [operationName(channel), operationOf(channel)])),
    components: { messages: messages() },
  };
  const head =
    '# Generated from services/platform/topology.ts and schemas/ by `npm run generate`. Do not edit.\n';
  return head + stringify(document, { lineWidth: 120, aliasDuplicateObjects: false });
}

function channelsOf(channel: Channel): [string, Json][] {
  const used = [...channel.address.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => [name, parameters[name]]);
  const own: Json = {
    address: channel.address,
    summary: channel.summary,
    messages: reference(channel.message),
    ...(used.length === 0 ? {} : { parameters: Object.fromEntries(used) }),
    tags: [{ name: channel.open ? 'tenant' : 'services' }],
  };
  const reply: Json = { address: null, messages: reference(channel.reply ?? '') };
  return channel.reply === undefined
    ? [[channel.name, own]]
    : [
        [channel.name, own],
        [`${channel.name}-reply`, reply],
      ];
}

const reference = (message: string): Json => ({ [message]: { $ref: `#/components/messages/${message}` } });
const operationName = ({ name, action }: Channel): string => `${action}-${name}`;

function operationOf({ name, action, message, reply }: Channel): Json {
  const place = (channel: string) => ({ $ref: `#/channels/${channel}` });
  const said = (channel: string, what: string) => [{ $ref: `#/channels/${channel}/messages/${what}` }];
  const answer =
    reply === undefined
      ? {}
      : { reply: { channel: place(`${name}-reply`), messages: said(`${name}-reply`, reply) } };
  return { action, channel: place(name), messages: said(name, message), ...answer };
}

function messages(): Json {
  const names = channels.flatMap(({ message, reply }) =>
    reply === undefined ? [message] : [message, reply],
  );
  return Object.fromEntries(
    [...new Set(names)].map((name) => [name, requestMessages[name] ?? eventMessage(name)]),
  );
}

function eventMessage(name: string): Json {
  const bySubmitter = name === 'JobSubmitted' || name === 'JobCancelRequested';
  return { name, headers: bySubmitter ? submissionHeaders : eventHeaders, payload: avro(name) };
}
