/** Who may say what on the bus, and what becomes of the rest. */
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { EventIdentity, SignedMessage } from './event-keys.ts';
import { EventKeys, keyIdOf } from './event-keys.ts';
import { everyService } from './fixture.ts';
import { createLogger } from './log.ts';
import {
  activateServiceKey,
  ensureServiceKeys,
  retireServiceKeys,
  serviceKeyFiles,
  stageServiceKey,
} from './service-keys.ts';
import type { ServiceName } from './topology.ts';
import { headerNames } from './topology.ts';

const log = createLogger('test', 'fatal');
let folder: string;
let all: EventIdentity;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sandbus-test-'));
  all = await everyService(folder);
});
after(() => rm(folder, { recursive: true }));

const job = 'acme.019d0000-0000-7000-8000-000000000001';
const data = Buffer.from('an event');

function message(subject: string, id: string, changes: Partial<SignedMessage> = {}): SignedMessage {
  const signature = all.sign({ subject, id, data });
  return { subject, data, headers: { 'Nats-Msg-Id': id, [headerNames.signature]: signature }, ...changes };
}

test('checked aside, many at one time, each gets the verdict of its own', async () => {
  const services: ServiceName[] = ['verifier', 'executor', 'audit'];
  const messages = Array.from({ length: 1000 }, (_, i) => {
    const service = services[i % services.length] ?? 'audit';
    const changes = i % 7 === 3 ? { data: Buffer.from(`not event ${i}`) } : {};
    return message(`job.started.${job}`, `${service}:x:JOBS:${i}`, changes);
  });
  const aside = await Promise.all(messages.map((one) => all.checkAside(one)));
  assert.deepEqual(aside, messages.map(all.check));
  assert.equal(aside.filter(({ ok }) => ok).length, 285);
});

describe('who may say what', () => {
  const cases: [subject: string, author: ServiceName, allowed: boolean][] = [
    [`job.verified.${job}`, 'verifier', true],
    [`job.verified.${job}`, 'executor', false],
    [`job.verified.${job}`, 'router', false],
    [`job.rejected.${job}`, 'verifier', true],
    [`job.rejected.${job}`, 'router', true],
    [`job.rejected.${job}`, 'executor', true],
    [`job.rejected.${job}`, 'audit', false],
    [`job.started.${job}`, 'executor', true],
    [`job.started.${job}`, 'router', false],
    [`job.finished.${job}`, 'executor', true],
    [`job.finished.${job}`, 'verifier', false],
    [`job.superseded.${job}`, 'executor', true],
    [`job.superseded.${job}`, 'router', false],
    [`job.cancelled.${job}`, 'router', true],
    [`job.cancelled.${job}`, 'executor', false],
    [`job.dead-lettered.${job}`, 'audit', true],
    [`work.python.cpu.${job}`, 'router', true],
    [`work.python.cpu.${job}`, 'executor', false],
    [`log.${job}.stdout`, 'executor', true],
    [`log.${job}.stdout`, 'verifier', false],
    [`audit.${job}.started`, 'audit', true],
    [`audit.${job}.started`, 'executor', false],
    ['audit-checkpoint', 'audit', true],
    ['audit-checkpoint', 'router', false],
    ['trace.router', 'router', true],
    ['trace.router', 'executor', false],
    [`job.submitted.${job}`, 'verifier', false],
    ['job', 'verifier', false],
    ['constructor.x', 'verifier', false],
  ];
  for (const [subject, author, allowed] of cases)
    test(`${author}: ${subject.replace(job, '…')} ${allowed ? 'is an event' : 'is none'}`, () => {
      const verdict = all.check(message(subject, `${author}:x:JOBS:1`));
      assert.deepEqual(verdict.ok ? verdict.signer : null, allowed ? author : null);
    });
});

describe('what is changed after signing is no event', () => {
  const good = () => message(`job.verified.${job}`, 'verifier:verified:SUBMISSIONS:7');
  const headers = (changes: Record<string, string>) => ({ headers: { ...good().headers, ...changes } });
  const signature = () => Buffer.from(good().headers[headerNames.signature] ?? '', 'base64');
  const flipped = (at: number) => {
    const bytes = signature();
    bytes[at] = (bytes[at] ?? 0) ^ 1;
    return bytes.toString('base64');
  };
  const cases: [what: string, change: () => Partial<SignedMessage>, detail: RegExp][] = [
    ['the content', () => ({ data: Buffer.from('another') }), /over this subject, id and content/],
    ['no content', () => ({ data: Buffer.alloc(0) }), /over this subject/],
    ['the job', () => ({ subject: `job.verified.${job.replace('acme', 'other')}` }), /over this subject/],
    ['the id', () => headers({ 'Nats-Msg-Id': 'verifier:verified:SUBMISSIONS:8' }), /over this subject/],
    ['another id beside it', () => headers({ [headerNames.eventId]: 'verifier:x' }), /over this subject/],
    ['the signature', () => headers({ [headerNames.signature]: flipped(20) }), /over this subject/],
    ['the key id', () => headers({ [headerNames.signature]: flipped(0) }), /not in the keyring/],
    ['a signature cut short', () => headers({ [headerNames.signature]: 'AAAA' }), /malformed/],
    ['an empty signature', () => headers({ [headerNames.signature]: '' }), /malformed/],
    ['no headers', () => ({ headers: {} }), /not signed/],
    [
      'the key of another service',
      () => {
        const as = { subject: `job.verified.${job}`, id: 'executor:verified:SUBMISSIONS:7', data };
        return headers({ [headerNames.signature]: all.sign(as) });
      },
      /not that of key [0-9a-f]{16} of executor/,
    ],
    [
      // The boundary between subject and id is signed too.
      'a piece of the id moved into the subject',
      () => ({
        subject: `job.verified.${job}v`,
        ...headers({ 'Nats-Msg-Id': 'erifier:verified:SUBMISSIONS:7' }),
      }),
      /over this subject/,
    ],
  ];
  test('unchanged it is one', () => assert.equal(all.check(good()).ok, true));
  for (const [what, change, detail] of cases)
    test(what, () => {
      const verdict = all.check({ ...good(), ...change() });
      assert.match(verdict.ok ? 'accepted' : verdict.detail, detail);
    });
});

test('keys change without a pause: two are valid, and files are read again', async () => {
  const state = await mkdtemp(join(tmpdir(), 'sandbus-test-'));
  try {
    await ensureServiceKeys(state);
    const verifier = EventKeys.load('verifier', serviceKeyFiles(state, 'verifier'), log);
    const reader = EventKeys.load('audit', serviceKeyFiles(state, 'audit'), log);
    const say = () => {
      const event = { subject: `job.verified.${job}`, id: 'verifier:x:JOBS:1', data };
      return {
        ...event,
        headers: { 'Nats-Msg-Id': event.id, [headerNames.signature]: verifier.sign(event) },
      };
    };
    const old = say();
    const newId = await stageServiceKey(state, 'verifier');
    assert.deepEqual(say(), old, 'a staged key is not used yet');
    await assert.rejects(stageServiceKey(state, 'verifier'), /two keys already/);
    assert.equal(await activateServiceKey(state, 'verifier'), newId);
    const fresh = say();
    assert.notDeepEqual(fresh, old);
    assert.deepEqual([reader.check(old).ok, reader.check(fresh).ok], [true, true]);
    const [gone] = await retireServiceKeys(state, 'verifier');
    assert.ok(gone !== undefined && gone !== newId);
    assert.deepEqual([reader.check(old).ok, reader.check(fresh).ok], [false, true]);
  } finally {
    await rm(state, { recursive: true });
  }
});

test('a service without a believed key does not start, and the error names the file', async () => {
  const state = await mkdtemp(join(tmpdir(), 'sandbus-test-'));
  try {
    const files = serviceKeyFiles(state, 'router');
    const load = () => EventKeys.load('router', files, log);
    assert.throws(load, /service-keys\.json: make them with/);
    await ensureServiceKeys(state);
    const mine = await readFile(files.privateKey);
    await writeFile(files.privateKey, await readFile(serviceKeyFiles(state, 'executor').privateKey));
    assert.throws(load, /does not list the key of .*router\.pem for router/);
    await rm(files.privateKey);
    assert.throws(load, /no usable key of router in .*router\.pem/);
    await writeFile(files.privateKey, mine);
    assert.match(keyIdOf((await import('node:crypto')).createPrivateKey(mine)), /^[0-9a-f]{16}$/);
    load();
    await writeFile(files.keyring, '{"services":{}}');
    assert.throws(load, /no usable keys/);
  } finally {
    await rm(state, { recursive: true });
  }
});
