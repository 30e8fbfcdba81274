/**
 * A tenant that tries things, with nothing but its own credentials and a NATS client, beside a tenant that just works.
 * What it tries must be refused, everybody else works on, and the operator can see the attempt.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { NatsConnection } from 'nats';
import { connect as natsConnect, nkeyAuthenticator } from 'nats';
import type { SandbusClient } from '../../services/client/index.ts';
import { connect } from '../../services/client/index.ts';
import type { Bus } from '../../services/platform/nats/bus.ts';
import { eventually } from '../with-nats.ts';
import type { TestSystem } from '../with-system.ts';
import { connectAsDeployment, finished, startTestSystem, text } from '../with-system.ts';

/** How much each stream holds, and the highest sequence that it ever gave; records in the feed. */
export type Holdings = Readonly<Record<string, { messages: number; lastSequence: number }>>;

const streams = [
  'SUBMISSIONS',
  'JOBS',
  'LOGS',
  'KV_jobs',
  'KV_schemas',
  'KV_uploads',
  'OBJ_plugins',
  'OBJ_artifacts',
];

export class Attack {
  readonly system: TestSystem;
  readonly deployment: Bus;
  /** The victim. */
  readonly other: SandbusClient;
  /** As the tenant `acme`. */
  readonly attacker: NatsConnection;
  /** What the attacker's client was told that it may not do. */
  readonly #complaints: string[] = [];
  #counted = { records: 0, sequence: 0 };

  private constructor(system: TestSystem, deployment: Bus, other: SandbusClient, attacker: NatsConnection) {
    this.system = system;
    this.deployment = deployment;
    this.other = other;
    this.attacker = attacker;
    void this.#listenToComplaints();
  }

  static async start(): Promise<Attack> {
    const system = await startTestSystem({}, { tenants: ['acme', 'other'] });
    const { url, system: running } = system;
    const deployment = await connectAsDeployment(system);
    const other = await connect({ url, tenant: 'other', credentials: running.credentialsOf('other') });
    const seed = /^SU\w+$/m.exec(readFileSync(running.credentialsOf('acme'), 'utf8'))?.[0] ?? '';
    const authenticator = nkeyAuthenticator(Buffer.from(seed));
    return new Attack(system, deployment, other, await natsConnect({ servers: url, authenticator }));
  }

  async stop(): Promise<void> {
    await this.attacker.close();
    await this.other.close();
    await this.deployment.close();
    await this.system.stop();
  }

  async #listenToComplaints(): Promise<void> {
    for await (const { permissionContext: forbidden } of this.attacker.status())
      if (forbidden !== undefined) this.#complaints.push(`${forbidden.operation} ${forbidden.subject}`);
  }

  serverLog(): string {
    return readFileSync(join(this.system.stateDir, 'nats/nats-server.log'), 'utf8');
  }

  /** The attacker is told, and it is in the server's log. */
  async isRefusedAndLogged(operation: 'publish' | 'subscription', subject: string): Promise<void> {
    await eventually(`${operation} ${subject} is refused`, () =>
      this.#complaints.includes(`${operation} ${subject}`),
    );
    const kind = operation === 'publish' ? 'Publish' : 'Subscription';
    await eventually(`${subject} is in the server's log`, () =>
      this.serverLog()
        .split('\n')
        .some((line) => line.includes(`${kind} Violation`) && line.includes(`"${subject}"`)),
    );
  }

  async othersWork(): Promise<void> {
    const bytes = Buffer.from('echo unharmed\n');
    const envelope = this.system.sign('o.sh', bytes);
    const { jobId } = await this.other.submit({ plugin: { name: 'o.sh', bytes }, envelope });
    assert.equal(text(finished(await this.other.wait(jobId)).stdout.inline), 'unharmed\n');
  }

  /** Reasons of the dead letters of a job of the attacker's tenant. */
  async deadLetters(jobId: string): Promise<string[]> {
    const reasons: string[] = [];
    for await (const { event } of this.system.client.records({ jobId, follow: false }))
      if (event?.name === 'JobDeadLettered') reasons.push(event.value.reason);
    return reasons;
  }

  /** When nothing is under way any more, so that a change is the attacker's. */
  async quiet(): Promise<Holdings> {
    let before = '';
    let now: Holdings = {};
    await eventually('the bus is quiet', async () => {
      // Asked first: what is still done meanwhile is then in the holdings.
      const done = (await this.#allSettled()) && (await this.#allSigned());
      now = await this.#holdings();
      const same = JSON.stringify(now) === before;
      before = JSON.stringify(now);
      if (!same) await new Promise((resolve) => setTimeout(resolve, 300));
      return same && done;
    });
    return now;
  }

  async #holdings(): Promise<Holdings> {
    const states = streams.map(async (name) => {
      const { messages, lastSequence } = await this.deployment.streamState(name);
      return [name, { messages, lastSequence }] as const;
    });
    const records = await this.recordCount();
    return {
      ...Object.fromEntries(await Promise.all(states)),
      AUDIT: { messages: records, lastSequence: 0 },
    };
  }

  /** Records in the feed; the checkpoints between them come when nobody does anything, too. */
  async recordCount(): Promise<number> {
    let { records, sequence } = this.#counted;
    for (;;) {
      const message = await this.deployment.nextMessage('AUDIT', sequence + 1, 'audit.>');
      if (message === null) break;
      sequence = message.sequence;
      records++;
    }
    this.#counted = { records, sequence };
    return records;
  }

  /** The router makes the entries of ended jobs small, a few seconds after their end. */
  async #allSettled(): Promise<boolean> {
    const { deployment } = this;
    let message = await deployment.nextMessage('KV_jobs', 1, '>');
    for (; message !== null; message = await deployment.nextMessage('KV_jobs', message.sequence + 1, '>')) {
      const entry = JSON.parse(text(message.data)) as { terminal: { data: string | null } | null };
      if (entry.terminal !== null && entry.terminal.data !== null) return false;
    }
    return true;
  }

  /** A checkpoint follows the last record within a second: then audit has said all. */
  async #allSigned(): Promise<boolean> {
    const { lastSequence } = await this.deployment.streamState('AUDIT');
    const last = await this.deployment.nextMessage('AUDIT', lastSequence, '>');
    return last === null || last.subject === 'audit-checkpoint';
  }
}

/** A job that nobody has. */
export const absentJob = '019d5f00-1111-7222-8333-444455556666';
/** A digest that nothing has. */
export const absentSha256 = 'ab'.repeat(32);
