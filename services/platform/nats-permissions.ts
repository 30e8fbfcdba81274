/**
 * Who may do what on the NATS server, from the topology; DESIGN's rule in one place. Pure: `sandbus up` and deploy/ both
 * render what stands here (nats-accounts.ts), and a test tries everything that does not.
 *
 * Services share one account, each with explicit lists. Nobody but deployment makes streams or consumers: services pull
 * from durable ones, read messages by sequence, and have no wildcard over the JetStream API.
 *
 * Each tenant has an account of its own, without JetStream. What it imports is all that it can reach; and because a reply
 * subject is mapped where it crosses into the services' account, it cannot be aimed at anything there.
 */
import type { ConsumerDefinition, ServiceName, StreamDefinition } from './topology.ts';
import {
  authors,
  consumers,
  needsOf,
  requestFilters,
  routes,
  serviceNames,
  subjects,
  workConsumer,
} from './topology.ts';

export interface Permissions {
  readonly publish: readonly string[];
  readonly subscribe: readonly string[];
  /** May answer requests, each once. */
  readonly answers: boolean;
}

/** Where a service gets its own replies; no other service may listen there. */
export const inboxPrefix = (user: ServiceName | 'deployment'): string => `_INBOX_${user}`;

const api = (call: string): string => `$JS.API.${call}`;

/** Pull from a consumer that deployment has made, and settle. */
const pulls = ({ stream, durable }: ConsumerDefinition): string[] => [
  looksAt({ stream, durable }),
  api(`CONSUMER.MSG.NEXT.${stream}.${durable}`),
  `$JS.ACK.${stream}.${durable}.>`,
];
const looksAt = ({ stream, durable }: Pick<ConsumerDefinition, 'stream' | 'durable'>): string =>
  api(`CONSUMER.INFO.${stream}.${durable}`);

const measures = (stream: string): string => api(`STREAM.INFO.${stream}`);
const reads = (stream: string): string => api(`STREAM.MSG.GET.${stream}`);
const removesFrom = (stream: StreamDefinition['name']): string => api(`STREAM.MSG.DELETE.${stream}`);

const readsKeys = (bucket: string): string[] => [measures(`KV_${bucket}`), reads(`KV_${bucket}`)];
const writesKeys = (bucket: string): string[] => [...readsKeys(bucket), `$KV.${bucket}.>`];

const readsObjects = (bucket: string): string[] => [
  measures(`OBJ_${bucket}`),
  reads(`OBJ_${bucket}`),
  // The chunks of an object, by sequence.
  api(`DIRECT.GET.OBJ_${bucket}`),
];
/** Writing one also removes the chunks of what failed half way, and deleting one all of them. */
const writesObjects = (bucket: string): string[] => [
  ...readsObjects(bucket),
  `$O.${bucket}.>`,
  api(`STREAM.PURGE.OBJ_${bucket}`),
];

/** What a service says: every subject whose author it may be. */
const says = (service: ServiceName): string[] =>
  [...authors]
    .filter(([, by]) => by.includes(service))
    .map(([first]) => (isWhole(first) ? first : `${first}.>`));

const isWhole = (subject: string): boolean =>
  subject === subjects.auditCheckpoint || subject.startsWith('trace.');

type Own = Omit<Permissions, 'answers'> & { readonly answers?: boolean };

const own: Readonly<Record<ServiceName, Own>> = {
  verifier: {
    publish: [
      ...pulls(consumers.verifier),
      ...writesKeys('jobs'),
      ...writesKeys('uploads'),
      ...writesKeys('trust'),
      ...writesObjects('plugins'),
      // Submissions are taken while JOBS has room; jobs that wait are looked through when trust is taken back.
      reads('JOBS'),
      measures('JOBS'),
      measures('SUBMISSIONS'),
    ],
    subscribe: [requestFilters.upload],
    answers: true,
  },
  router: {
    publish: [
      ...pulls(consumers.router),
      ...pulls(consumers.routerCancels),
      ...writesKeys('jobs'),
      'wake.*.*',
      subjects.cancelNotice('*'),
      // Held jobs are found again by their events, and of ended ones whether their end was said and recorded.
      reads('JOBS'),
      reads('SUBMISSIONS'),
    ],
    subscribe: [],
  },
  executor: {
    publish: [
      ...routes.flatMap((route) => pulls({ stream: 'JOBS', durable: workConsumer(route), filter: null })),
      ...writesKeys('jobs'),
      ...writesKeys('trust'),
      ...readsObjects('plugins'),
      ...writesObjects('artifacts'),
    ],
    subscribe: ['wake.*.*', subjects.cancelNotice('*')],
  },
  audit: {
    publish: [
      ...pulls(consumers.auditSubmissions),
      ...pulls(consumers.auditJobs),
      ...pulls(consumers.auditTraces),
      // A submission leaves the bus when these two have handled it.
      looksAt(consumers.verifier),
      looksAt(consumers.routerCancels),
      ...(['SUBMISSIONS', 'JOBS', 'AUDIT', 'LOGS'] as const).flatMap((stream) => [
        reads(stream),
        measures(stream),
      ]),
      removesFrom('SUBMISSIONS'),
      removesFrom('JOBS'),
      ...readsObjects('artifacts'),
    ],
    subscribe: [requestFilters.auditRead, requestFilters.auditOperate, requestFilters.download, 'log.*.*.*'],
    answers: true,
  },
};

/** A service says of its health whether all that it needs is there. */
function looksAtNeeds(service: ServiceName): string[] {
  const { streams, consumers: needed } = needsOf(service);
  return [...streams.map(measures), ...needed.map(looksAt)];
}

export function servicePermissions(service: ServiceName): Permissions {
  const { publish, subscribe, answers = false } = own[service];
  return {
    publish: [...new Set([...says(service), ...publish, ...looksAtNeeds(service)])],
    subscribe: [`${inboxPrefix(service)}.>`, ...subscribe],
    answers,
  };
}

/**
 * Makes streams, consumers and buckets, publishes the schemas, and forgets a lost root, before any service runs; and has
 * payloads erased.
 */
export const deploymentPermissions: Permissions = {
  publish: [api('>'), '$KV.schemas.>', '$KV.trust.>', subjects.auditOperate],
  subscribe: [`${inboxPrefix('deployment')}.>`],
  answers: false,
};

/** What a tenant's account imports: requests that it may make of the services, and what it may listen to. */
export interface TenantImports {
  readonly services: readonly string[];
  readonly streams: readonly string[];
}

export function tenantImports(tenant: string): TenantImports {
  return {
    services: [
      `job.submitted.${tenant}.>`,
      `job.cancel-requested.${tenant}.>`,
      `upload.${tenant}.>`,
      `download.${tenant}.>`,
      subjects.auditRead(tenant),
    ],
    streams: [`audit.${tenant}.>`, subjects.auditCheckpoint],
  };
}

/** The same again as permissions of the tenant's user: in its own account it could else publish into nothing, unseen. */
export function tenantPermissions(tenant: string): Permissions {
  const { services, streams } = tenantImports(tenant);
  return { publish: services, subscribe: ['_INBOX.>', ...streams], answers: false };
}

export const natsUsers = [...serviceNames, 'deployment'] as const;
export type NatsUser = (typeof natsUsers)[number];

export function userPermissions(user: NatsUser): Permissions {
  return user === 'deployment' ? deploymentPermissions : servicePermissions(user);
}
