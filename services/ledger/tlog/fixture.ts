/** A tree and a log in memory, for tests. */
import type { KeyObject } from 'node:crypto';
import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import type { AuditRecord } from '../../platform/codec.ts';
import type { Keyring, Signable } from '../../platform/event-keys.ts';
import { keyIdOf, signEvent } from '../../platform/event-keys.ts';
import type { JobEventKind, JobRef } from '../../platform/topology.ts';
import { authors, eventId, serviceNames, subjects } from '../../platform/topology.ts';
import { signCheckpoint } from './checkpoint.ts';
import { CompactRange } from './compact-range.ts';
import { sealed } from './leaf.ts';
import type { Signer, VerifierKey } from './note.ts';
import { verifierKeyOf } from './note.ts';
import type { HashLevel, HashSource } from './proofs.ts';

export class MemoryHashes implements HashSource {
  readonly levels = new Map<HashLevel, Uint8Array[]>([
    [0, []],
    [8, []],
    [16, []],
    [24, []],
  ]);
  readonly range = CompactRange.empty();
  /** The most hashes that were read at once. */
  largest = 0;

  static of(leafHashes: readonly Uint8Array[]): MemoryHashes {
    const source = new MemoryHashes();
    for (const leafHash of leafHashes) source.add(leafHash);
    return source;
  }

  add(leafHash: Uint8Array): void {
    this.levels.get(0)?.push(leafHash);
    this.range.append(leafHash, (level, _number, hash) => void this.levels.get(level)?.push(hash));
  }

  async hashes(level: HashLevel, from: number, count: number): Promise<Uint8Array[]> {
    this.largest = Math.max(this.largest, count);
    return (this.levels.get(level) ?? []).slice(from, from + count);
  }
}

const newKey = (): KeyObject => generateKeyPairSync('ed25519').privateKey;
const newServiceKeys = (): ReadonlyMap<string, KeyObject> =>
  new Map(serviceNames.map((name) => [name, newKey()]));

export const logName = 'sandbus.example/ledger';

/** A log with a key of its own, whose services sign as they do on the bus. */
export class MemoryLog {
  readonly hashes = new MemoryHashes();
  readonly records: AuditRecord[] = [];
  readonly signer: Signer;
  readonly verifierKey: VerifierKey;
  readonly #services: ReadonlyMap<string, KeyObject>;
  readonly #lastLeaf = new Map<string, Uint8Array>();
  readonly #tenantSizes = new Map<string, number>();

  constructor(signer = { name: logName, key: newKey() }, services = newServiceKeys()) {
    this.signer = signer;
    this.verifierKey = verifierKeyOf(signer.name, signer.key);
    this.#services = services;
  }

  /** An empty log by the same hands. */
  another(): MemoryLog {
    return new MemoryLog(this.signer, this.#services);
  }

  /** The services' public keys. */
  get keyring(): Keyring {
    const entries = serviceNames.map((service) => {
      const key = createPublicKey(this.#services.get(service) as KeyObject);
      return [keyIdOf(key), { service, key }] as const;
    });
    return new Map(entries);
  }

  /** The event that the service of this kind says, with any bytes; or somebody else, who does not sign it. */
  add(
    job: JobRef,
    kind: JobEventKind,
    payload: Uint8Array = Buffer.from(`${kind} of ${job.jobId}`),
    saidBy?: string,
  ): AuditRecord {
    const sequence = this.records.length;
    const subject =
      kind === 'routed'
        ? subjects.work({ runtime: 'bash', deviceClass: 'cpu' }, job)
        : subjects.job(kind, job);
    const stream = kind === 'submitted' || kind === 'cancel-requested' ? 'SUBMISSIONS' : 'JOBS';
    const author = stream === 'JOBS' ? (authors.get(prefixOf(subject))?.[0] ?? 'router') : 'submitter';
    const signer = saidBy ?? author;
    const id = eventId(signer, kind, { stream, sequence: sequence + 1 }, job);
    const record = sealed(
      {
        ...{ ...job, kind, subject, signer, stream, sequence, eventId: id, traceparent: null },
        tenantSequence: this.#tenantSizes.get(job.tenant) ?? 0,
        recordedAt: 1_800_000_000_000_000 + sequence * 1000,
        signature: this.#sign(signer, { subject, id, data: payload }),
        streamSequence: sequence + 1,
        previousLeafHash: this.#lastLeaf.get(job.jobId) ?? new Uint8Array(),
      },
      payload,
    );
    this.records.push(record);
    this.hashes.add(record.leafHash);
    this.#lastLeaf.set(job.jobId, record.leafHash);
    this.#tenantSizes.set(job.tenant, record.tenantSequence + 1);
    return record;
  }

  /** Of everything that is there now. */
  checkpoint(): Uint8Array {
    return signCheckpoint({ size: this.records.length, root: this.hashes.range.root() }, this.signer);
  }

  #sign(signer: string, event: Signable): Uint8Array | null {
    const key = this.#services.get(signer);
    return key === undefined ? null : signEvent(event, key);
  }
}

const prefixOf = (subject: string): string => {
  const [first = '', second = ''] = subject.split('.');
  return first === 'work' ? first : `${first}.${second}`;
};
