/** Keys, signatures and the trust store as a person uses them: files in a folder, one command after the other. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { UsageError } from '../platform/errors.ts';
import type { SigningKey } from '../trust/index.ts';
import {
  STATEMENT_PAYLOAD_TYPE,
  signEnvelope,
  statementFor,
  withRevokedDigest,
  withRevokedKey,
} from '../trust/index.ts';
import { loadPrivateKey } from './private-keys.ts';
import {
  architectureOf,
  loadTrustStore,
  makeKeyPair,
  signedDefaults,
  signFile,
  verifyFile,
} from './signing.ts';
import { addKey, changeStore, initStore, replaceKey } from './trust-file.ts';

let folder: string;
let ada: SigningKey;
let bob: SigningKey;
let root: SigningKey;
const at = (name: string) => join(folder, name);
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sandbus-signing-'));
  await makeKeyPair(at('ada.pem'));
  await makeKeyPair(at('bob.pem'));
  ada = await loadPrivateKey(at('ada.pem'));
  bob = await loadPrivateKey(at('bob.pem'));
  await makeKeyPair(at('root.pem'), at('root.pub'));
  root = await loadPrivateKey(at('root.pem'));
});
after(() => rm(folder, { recursive: true, force: true }));

const usage = (message: RegExp) => (error: unknown) =>
  error instanceof UsageError && message.test(error.message);
const dayMs = 86_400_000;

/** A store that trusts the key, for these plugin names. */
async function storeWith(name: string, owner: string, plugins: readonly string[] = ['*']): Promise<string> {
  const path = at(name);
  await rm(path, { force: true });
  const nowMs = Date.now();
  await initStore(path, { expiresMs: nowMs + dayMs, threshold: 1, rootKey: null });
  const rest = {
    tenants: ['*'],
    gpu: false,
    network: false,
    notBeforeMs: nowMs - dayMs,
    expiresMs: nowMs + dayMs,
  };
  await addKey(path, root, { publicKeyFile: at(`${owner}.pem.pub`), owner, plugins, ...rest });
  return path;
}

/** The header of a program for this machine, by its number in e_machine. */
function elfFor(machine: number): Buffer {
  const header = Buffer.alloc(64);
  header.set([0x7f, 0x45, 0x4c, 0x46, 2, 1]);
  header.writeUInt16LE(machine, 18);
  return header;
}
const elf = elfFor(0x3e);

/** An ELF file, and an envelope by another tool, which signs it as a script. */
async function signMismatch(name: string): Promise<void> {
  await writeFile(at(name), 'exit\n');
  const { statement } = await signFile(at(name), ada, at(`${name}.dsse.json`), { notBeforeMs: 1 });
  await writeFile(at(name), elf);
  const sha256 = createHash('sha256').update(elf).digest('hex');
  const payload = statementFor({ ...statement, sha256 });
  assert.ok(payload.ok);
  await writeFile(at(`${name}.dsse.json`), signEnvelope(STATEMENT_PAYLOAD_TYPE, payload.value, [ada]));
}

async function verify(file: string, store: string) {
  const trustStore = await loadTrustStore(store, at('root.pub'));
  return verifyFile({
    path: at(file),
    envelopePath: at(`${file}.dsse.json`),
    tenant: 'default',
    trustStore,
    policy: null,
  });
}

describe('keygen', () => {
  it('keeps the private key to its owner', async () => {
    assert.equal((await stat(at('ada.pem'))).mode & 0o777, 0o600);
    assert.match(await readFile(at('ada.pem'), 'utf8'), /^-----BEGIN PRIVATE KEY-----/);
    assert.match(await readFile(at('ada.pem.pub'), 'utf8'), /^-----BEGIN PUBLIC KEY-----/);
  });

  it('overwrites nothing, and leaves nothing half done', async () => {
    await assert.rejects(makeKeyPair(at('ada.pem')), usage(/not overwritten/));
    await writeFile(at('carol.pem.pub'), 'mine');
    await assert.rejects(makeKeyPair(at('carol.pem')), usage(/carol\.pem\.pub: it is there already/));
    assert.ok(!(await readdir(folder)).includes('carol.pem'));
  });
});

describe('sign', () => {
  it('says what a job may ask for at most, and takes the rest from the file', async () => {
    await writeFile(at('hello.py'), 'print(1)\n');
    const options = { memoryBytes: 1024, version: '2.1.0' };
    const { statement } = await signFile(at('hello.py'), ada, at('hello.py.dsse.json'), options);
    const { name, version, runtime, architecture, limits, requiresGpu, network } = statement;
    assert.deepEqual(
      { name, version, runtime, architecture, limits, requiresGpu, network },
      {
        name: 'hello',
        version: '2.1.0',
        runtime: 'python',
        architecture: null,
        limits: {
          memoryBytes: 1024,
          cpuMillis: signedDefaults.cpuMillis,
          wallMs: signedDefaults.wallMs,
          processes: 256,
        },
        requiresGpu: false,
        network: 'none',
      },
    );
  });

  it('adds a second signature to the very statement that the first is over', async () => {
    await writeFile(at('both.sh'), 'exit\n');
    await signFile(at('both.sh'), ada, at('both.sh.dsse.json'), {});
    const first = JSON.parse(await readFile(at('both.sh.dsse.json'), 'utf8'));
    await signFile(at('both.sh'), bob, at('both.sh.dsse.json'), { add: true });
    const both = JSON.parse(await readFile(at('both.sh.dsse.json'), 'utf8'));
    assert.equal(both.payload, first.payload);
    assert.equal(both.signatures.length, 2);
  });

  it('adds none to a statement about another file', async () => {
    await writeFile(at('both.sh'), 'exit 1\n');
    await assert.rejects(
      signFile(at('both.sh'), bob, at('both.sh.dsse.json'), { add: true }),
      usage(/SHA-256/),
    );
  });

  const refused: readonly (readonly [
    name: string,
    content: string | Buffer,
    options: object,
    message: RegExp,
  ])[] = [
    ['notes.txt', 'text', {}, /not a 64-bit ELF file; a script needs its extension/],
    [
      'hello.py',
      'x',
      { runtime: 'bash' },
      /the file name hello\.py means python, the signed runtime is bash/,
    ],
    ['.hidden.py', 'x', {}, /must be a file name: .*the first no \. \+ -/],
    ['a.py', 'x', { expiresMs: 1 }, /"expires" must be later/],
    ['a.py', 'x', { name: 'other' }, /must begin with the plugin's name other/],
    ['elf.sh', elf, {}, /elf\.sh: .*content says native \(ELF for x86_64\); .*refused as RUNTIME_MISMATCH/],
    ['she.py', '#!/usr/bin/env nonsense\n', {}, /a script for "nonsense"; .*refused as RUNTIME_UNSUPPORTED/],
    ['long.py', `#!${'/folder'.repeat(20)}/bash\n`, {}, /content says bash .*RUNTIME_MISMATCH/],
  ];
  for (const [name, content, options, message] of refused)
    it(`refuses ${name} with ${JSON.stringify(options)}`, async () => {
      await writeFile(at(name), content);
      await assert.rejects(signFile(at(name), ada, at('out.dsse.json'), options), usage(message));
      assert.ok(!(await readdir(folder)).includes('out.dsse.json'));
    });

  it('signs a native plugin for another machine than this one', async () => {
    await writeFile(at('tool'), elfFor(0xb7));
    const { statement } = await signFile(at('tool'), ada, at('tool.dsse.json'), {});
    assert.equal(statement.architecture, 'aarch64');
  });

  it('adds no signature to a statement that every job would be refused for', async () => {
    await signMismatch('seconded.sh');
    await assert.rejects(
      signFile(at('seconded.sh'), bob, at('seconded.sh.dsse.json'), { add: true }),
      usage(/RUNTIME_MISMATCH/),
    );
  });

  it('knows the architecture of a native plugin', () => {
    for (const [machine, architecture] of [
      [0x3e, 'x86_64'],
      [0xb7, 'aarch64'],
    ] as const) {
      assert.equal(architectureOf('tool', elfFor(machine)), architecture);
    }
    assert.throws(() => architectureOf('tool', elfFor(0x28)), usage(/another machine/));
  });
});

describe('verify', () => {
  before(async () => {
    await writeFile(at('job.sh'), 'exit\n');
    await signFile(at('job.sh'), ada, at('job.sh.dsse.json'), { notBeforeMs: Date.now() - 1000 });
  });

  it('says yes to a trusted key', async () => {
    const decision = await verify('job.sh', await storeWith('trust.json', 'ada'));
    assert.ok(decision.ok);
    assert.deepEqual(decision.owners, ['ada']);
  });

  it('says no to another key, and what to do', async () => {
    const decision = await verify('job.sh', await storeWith('trust.json', 'bob'));
    assert.ok(
      !decision.ok && decision.reason === 'UNKNOWN_KEY' && decision.advice.includes('sandbus trust add'),
    );
  });

  it('says no outside of the scope of the key', async () => {
    const decision = await verify('job.sh', await storeWith('trust.json', 'ada', ['other-*']));
    assert.ok(!decision.ok && decision.reason === 'OUT_OF_SCOPE');
  });

  it('says yes again when an expired key has got a later date', async () => {
    const store = await storeWith('dates.json', 'ada');
    const scope = { tenants: ['*'], plugins: ['*'], gpu: false, network: false };
    const key = { publicKeyFile: at('ada.pem.pub'), owner: 'ada', ...scope, notBeforeMs: 1 };
    await replaceKey(store, root, { ...key, expiresMs: 2 });
    const expired = await verify('job.sh', store);
    assert.ok(!expired.ok && expired.reason === 'EXPIRED' && expired.advice.includes('trust add --replace'));
    await replaceKey(store, root, { ...key, expiresMs: Date.now() + dayMs });
    assert.ok((await verify('job.sh', store)).ok);
  });

  it('says no to content that the router would refuse', async () => {
    await signMismatch('program.sh');
    const decision = await verify('program.sh', await storeWith('trust.json', 'ada'));
    assert.ok(!decision.ok && decision.reason === 'RUNTIME_MISMATCH', JSON.stringify(decision));
  });

  it('says no after the key, or the file, was revoked', async () => {
    const store = await storeWith('trust.json', 'ada');
    const yes = await verify('job.sh', store);
    assert.ok(yes.ok);
    await changeStore(store, root, (content) => ({
      content: withRevokedDigest(content, yes.statement.sha256),
    }));
    const file = await verify('job.sh', store);
    assert.ok(!file.ok && file.reason === 'REVOKED');
    const again = await storeWith('trust.json', 'ada');
    await changeStore(again, root, (content) => ({ content: withRevokedKey(content, yes.keyIds[0] ?? '') }));
    const key = await verify('job.sh', again);
    assert.ok(!key.ok && key.reason === 'REVOKED');
  });
});
