/** Makes the topology in a server, and does the few things with streams that are not publish and consume. */
import type { JetStreamManager, NatsConnection, StreamConfig } from 'nats';
import { AckPolicy, DeliverPolicy, DiscardPolicy, nanos, RetentionPolicy, StorageType } from 'nats';
import { allSchemas } from '../codec.ts';
import { messageOf, UsageError } from '../errors.ts';
import type { StreamDefinition } from '../topology.ts';
import { ackWaitMs, allConsumers, kvBuckets, objectBuckets, streams } from '../topology.ts';
import { isFull, isNotFound } from './failures.ts';
import { replicaFault } from './server-version.ts';

export interface TopologyOptions {
  /** Replicas of every stream: 1 for one server, 3 for a cluster. */
  readonly replicas: number;
  /** Multiplies every size limit; below 1 for tests and small disks. */
  readonly sizeFactor: number;
}

/**
 * Makes or updates every stream, consumer and bucket, and publishes the schemas. Idempotent. Only deployment and
 * `sandbus up` call this, before any service starts.
 */
export async function ensureTopology(connection: NatsConnection, options: TopologyOptions): Promise<void> {
  try {
    const fault = replicaFault(connection.info?.version ?? 'unknown', options.replicas);
    if (fault !== null) throw new UsageError(`SANDBUS_REPLICAS=${options.replicas}: ${fault}`, 1);
    await makeTopology(connection, options);
  } catch (cause) {
    if (!isFull(cause)) throw cause;
    const mend = 'give its store more room, or make less with SANDBUS_SIZE_FACTOR, e.g. 0.1';
    throw new UsageError(`the NATS server has no room for the streams (${messageOf(cause)}): ${mend}`, 1);
  }
}

async function makeTopology(connection: NatsConnection, options: TopologyOptions): Promise<void> {
  const manager = await connection.jetstreamManager();
  const maxPayload = connection.info?.max_payload ?? 1024 * 1024;
  for (const stream of streams) await ensureStream(manager, streamConfig(stream, maxPayload, options));
  for (const consumer of allConsumers)
    await manager.consumers.add(consumer.stream, {
      durable_name: consumer.durable,
      ack_policy: AckPolicy.Explicit,
      deliver_policy: DeliverPolicy.All,
      ack_wait: nanos(ackWaitMs),
      max_deliver: -1,
      max_ack_pending: -1,
      ...(consumer.filter === null ? {} : { filter_subject: consumer.filter }),
    });
  await ensureBuckets(connection, options);
}

function streamConfig(
  stream: StreamDefinition,
  maxPayload: number,
  options: TopologyOptions,
): Partial<StreamConfig> {
  return {
    name: stream.name,
    subjects: [...stream.subjects],
    retention: stream.retention === 'workqueue' ? RetentionPolicy.Workqueue : RetentionPolicy.Limits,
    discard: stream.discard === 'new' ? DiscardPolicy.New : DiscardPolicy.Old,
    storage: StorageType.File,
    max_bytes: Math.round(stream.maxBytes * options.sizeFactor),
    max_age: nanos(stream.maxAgeMs),
    max_msg_size: maxPayload - stream.headroomBytes,
    num_replicas: options.replicas,
    duplicate_window: nanos(120_000),
    allow_direct: false,
  };
}

async function ensureStream(manager: JetStreamManager, config: Partial<StreamConfig>): Promise<void> {
  const exists = await manager.streams.info(config.name ?? '').then(
    () => true,
    (error: unknown) => {
      if (isNotFound(error)) return false;
      throw error;
    },
  );
  if (exists) await manager.streams.update(config.name ?? '', config);
  else await manager.streams.add(config);
}

/** As every client lays out an object store. The library's own call sends a field that newer servers (seen on 2.15.2) refuse. */
function objectStreamConfig(
  { name, maxBytes }: (typeof objectBuckets)[number],
  options: TopologyOptions,
): Partial<StreamConfig> {
  return {
    name: `OBJ_${name}`,
    subjects: [`$O.${name}.C.>`, `$O.${name}.M.>`],
    retention: RetentionPolicy.Limits,
    discard: DiscardPolicy.New,
    storage: StorageType.File,
    max_bytes: bucketBytes(maxBytes, options),
    num_replicas: options.replicas,
    allow_rollup_hdrs: true,
    allow_direct: true,
  };
}

/** The schemas and one object must fit, however small the rest is made. */
const bucketBytes = (maxBytes: number, { sizeFactor }: TopologyOptions): number =>
  Math.max(Math.min(maxBytes, 2 * 1024 * 1024), Math.round(maxBytes * sizeFactor));

async function ensureBuckets(connection: NatsConnection, options: TopologyOptions): Promise<void> {
  const views = connection.jetstream().views;
  for (const { name, maxBytes, ttlMs } of kvBuckets) {
    const max_bytes = bucketBytes(maxBytes, options);
    const kv = await views.kv(name, { history: 1, ttl: ttlMs, max_bytes, replicas: options.replicas });
    if (name === 'schemas') for (const schema of allSchemas()) await kv.put(schema.key, schema.text);
  }
  const manager = await connection.jetstreamManager();
  for (const bucket of objectBuckets) await ensureStream(manager, objectStreamConfig(bucket, options));
}
