/** `sandbus audit verify | prove | checkpoint`, beside a whole system and without one. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { copyFile, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { loadLogKey, logKeyFiles } from '../ledger/log-key.ts';
import { parseCheckpoint, signCheckpoint } from '../ledger/tlog/checkpoint.ts';
import { MemoryLog } from '../ledger/tlog/fixture.ts';
import type { JobProof } from '../ledger/tlog/job-proof.ts';
import { formatVerifierKey } from '../ledger/tlog/note.ts';
import { fill, tampering } from '../ledger/verify-fixture.ts';
import { installation } from '../platform/config.ts';
import { readAll, startChild } from '../platform/process.ts';
import { CliFixture } from './cli-process.ts';

const checker = join(installation.root, 'test/contract/check-job-proof.py');
let cli: CliFixture;
let jobId: string;
before(async () => {
  cli = await CliFixture.start();
  await cli.plugin('talk.sh', '#!/bin/bash\necho out\n');
  const { stdout } = await cli.sandbus(['submit', 'talk.sh', '--json']);
  ({ jobId } = JSON.parse(stdout.toString()));
  await cli.sandbus(['wait', jobId]);
});
after(() => cli.stop());

const at = (name: string): string => join(cli.folder, name);
/** Nothing of the system: no server, no state. */
const nowhere = () => ({ SANDBUS_NATS_URL: 'nats://127.0.0.1:1', SANDBUS_STATE_DIR: at('nowhere') });
const offline = (...args: string[]) => cli.sandbus(['audit', ...args], undefined, nowhere());

describe('a job is proved', () => {
  before(async () => {
    const { code, stderr } = await cli.sandbus(['audit', 'prove', jobId, '--out', 'job.proof.json']);
    assert.equal(code, 0, stderr);
    assert.match(
      stderr,
      /^Proved: the 5 events of job .* from submitted \(ledger sequence \d+\) to finished/,
    );
    await copyFile(logKeyFiles(cli.system.stateDir).verifierKey, at('log.pub'));
    await copyFile(join(cli.system.stateDir, 'service-keys.json'), at('service-keys.json'));
  });

  it('to one who has the file and the key of the log, and no more', async () => {
    const { code, stdout, stderr } = await offline(
      'verify',
      '--proof',
      'job.proof.json',
      '--log-key',
      'log.pub',
    );
    assert.equal(code, 0, stderr);
    assert.match(
      stdout.toString(),
      /^LEDGER SEQUENCE {2}RECORDED[\s\S]*submitted[\s\S]*verified[\s\S]*routed[\s\S]*started[\s\S]*finished[\s\S]*Proved: /,
    );
  });

  it('with the signatures of the services, where their keys are given', async () => {
    const args = [
      '--proof',
      'job.proof.json',
      '--log-key',
      'log.pub',
      '--service-keys',
      'service-keys.json',
      '--json',
    ];
    const { code, stdout } = await offline('verify', ...args);
    const { ok, complete, events } = JSON.parse(stdout.toString());
    assert.deepEqual([code, ok, complete], [0, true, true]);
    const signatures = events.map(({ signature }: { signature: string }) => signature);
    assert.deepEqual(signatures, ['none', 'valid', 'valid', 'valid', 'valid']);
  });

  it('with the keys and the key of the log that the environment names', async () => {
    const environment = {
      ...nowhere(),
      SANDBUS_LEDGER_VERIFIER_KEY: at('log.pub'),
      SANDBUS_SERVICE_KEYS: at('service-keys.json'),
    };
    const args = ['audit', 'verify', '--proof', 'job.proof.json', '--signatures', '--json'];
    const { code, stdout, stderr } = await cli.sandbus(args, undefined, environment);
    assert.equal(code, 0, stderr);
    assert.equal(JSON.parse(stdout.toString()).events[1].signature, 'valid');
    const missing = await cli.sandbus(args, undefined, { ...environment, SANDBUS_SERVICE_KEYS: at('none') });
    assert.match(missing.stderr, /cannot read keys of the services .*none: there is no such file/);
  });

  const openssl = spawnSync('openssl', ['version']).error;
  const without = openssl === undefined ? false : "Debian's package openssl is not installed";
  it('to a program that shares no code with this one', { skip: without }, async () => {
    const check = async (proof: string) => {
      const env = { PATH: '/usr/local/bin:/usr/bin:/bin' };
      const args = [checker, at(proof), at('log.pub')];
      const child = await startChild('python3', args, { env, stdio: ['ignore', 'pipe', 'inherit'] });
      const [stdout, { code }] = await Promise.all([readAll(child.stdout), child.exited]);
      return [code, stdout.toString()];
    };
    assert.deepEqual(await check('job.proof.json'), [
      0,
      'complete: submitted verified routed started finished\n',
    ]);
    const proof: JobProof = JSON.parse(await readFile(at('job.proof.json'), 'utf8'));
    const changes: [what: string, changed: JobProof][] = [
      ['missing', { ...proof, leaves: proof.leaves.toSpliced(2, 1) }],
      ['payload', { ...proof, leaves: proof.leaves.map((leaf) => ({ ...leaf, payload: 'AAAA' })) }],
      ['signature', { ...proof, checkpoint: proof.checkpoint.replace(/\n(\d+)\n/, '\n1$1\n') }],
    ];
    for (const [what, changed] of changes) {
      await writeFile(at('other.json'), JSON.stringify(changed));
      const [code, said] = await check('other.json');
      assert.equal(code, 1);
      assert.match(String(said), new RegExp(`not proved: .*${what}`));
    }
  });

  it('and the file is for the eyes of its owner', async () => {
    assert.equal((await stat(at('job.proof.json'))).mode & 0o777, 0o600);
  });

  it('and what is there already is not overwritten', async () => {
    await writeFile(at('kept.json'), 'of somebody');
    const { code, stderr } = await cli.sandbus(['audit', 'prove', jobId, '--out', 'kept.json']);
    assert.match(stderr, /^sandbus: cannot write kept\.json: it is there already, and is not overwritten$/m);
    assert.equal(code, 2);
    assert.equal(await readFile(at('kept.json'), 'utf8'), 'of somebody');
  });

  it('or not, when anything in it was changed', async () => {
    const proof: JobProof = JSON.parse(await readFile(at('job.proof.json'), 'utf8'));
    const changed = { ...proof, leaves: proof.leaves.toSpliced(2, 1) };
    await writeFile(at('changed.json'), JSON.stringify(changed));
    const { code, stderr } = await offline('verify', '--proof', 'changed.json', '--log-key', 'log.pub');
    assert.equal(code, 1);
    assert.match(stderr, /changed.json proves nothing:\n {2}event \d+: event \d+ is not the one before it/);
  });

  it('without its payloads, on standard output', async () => {
    const { code, stdout } = await cli.sandbus(['audit', 'prove', jobId, '--no-payloads']);
    const proof: JobProof = JSON.parse(stdout.toString());
    assert.deepEqual(
      [code, proof.leaves.length, proof.leaves.some(({ payload }) => payload !== undefined)],
      [0, 5, false],
    );
  });

  it('and one that is not there is not', async () => {
    const { code, stderr } = await cli.sandbus(['audit', 'prove', '0198c2f0-0000-7000-8000-000000000000']);
    assert.equal(code, 4);
    assert.match(stderr, /there is no job 0198c2f0/);
  });
});

describe('an output that has no room', () => {
  const cases: [args: readonly string[], code: number][] = [
    [['audit', 'export'], 69],
    [['audit', 'list'], 69],
    [['audit', 'prove', 'JOB'], 69],
    [['audit', 'verify'], 69],
    [['audit', 'verify', '--proof', 'job.proof.json', '--json'], 69],
    [['ps', '--all', '--json'], 69],
    [['help'], 69],
    [['run', 'talk.sh'], 125],
    [['run', 'talk.sh', '--json'], 125],
  ];
  for (const [args, expected] of cases)
    it(`is said, and is no answer: ${args.join(' ')}`, async () => {
      const words = args.map((word) => (word === 'JOB' ? jobId : word));
      const { code, stderr } = await cli.sandbusInto('/dev/full', words);
      assert.match(
        stderr,
        /^(sandbus: |.*"message":")cannot write standard output: no space left on device/m,
      );
      assert.doesNotMatch(stderr, /Proved:|shown this once|^ +at /m);
      assert.equal(code, expected, stderr);
    });
});

describe('a checkpoint is kept', () => {
  const keep = () => cli.sandbus(['audit', 'checkpoint', '--out', 'kept.checkpoint']);
  const sizeOf = (bytes: Uint8Array): number => {
    const parsed = parseCheckpoint(bytes);
    assert.ok(parsed.ok);
    return parsed.value.size;
  };

  it('for the first time, and again when the log has grown', async () => {
    const first = await keep();
    assert.equal(first.code, 0, first.stderr);
    assert.match(first.stdout.toString(), /kept for the first time/);
    const size = sizeOf(await readFile(at('kept.checkpoint')));
    await cli.sandbus(['run', 'talk.sh']);
    await cli.sandbus(['audit', 'prove', jobId]);
    const second = await keep();
    assert.match(second.stdout.toString(), new RegExp(`goes on from the ${size} of before`));
    assert.ok(sizeOf(await readFile(at('kept.checkpoint'))) >= size);
  });

  it('and the ledger is verified against it, while the service runs', async () => {
    await keep();
    for (const option of ['--checkpoint', '--since']) {
      const { code, stdout, stderr } = await cli.sandbus([
        'audit',
        'verify',
        '--signatures',
        '--jobs',
        option,
        'kept.checkpoint',
      ]);
      assert.equal(code, 0, stderr + stdout.toString());
      assert.match(stdout.toString(), /^whole: .* checkpoints agree/);
      assert.equal(stderr, '');
    }
  });

  const wrong: [what: string, size: (size: number) => number, said: RegExp][] = [
    ['was of a longer log', (size) => size + 1000, /the one that you keep of \d+: the log was set back/],
    ['was of another history', (size) => size, /the log is not the one that you keep a checkpoint of/],
    ['was of another history, shorter', () => 2, /the log is not the one that you keep a checkpoint of/],
  ];
  for (const [what, size, said] of wrong)
    it(`and stays when it ${what}`, async () => {
      await keep();
      const root = new Uint8Array(32);
      const signer = loadLogKey(logKeyFiles(cli.system.stateDir));
      const other = signCheckpoint(
        { size: size(sizeOf(await readFile(at('kept.checkpoint')))), root },
        signer,
      );
      await writeFile(at('other.checkpoint'), other);
      const { code, stderr } = await cli.sandbus(['audit', 'checkpoint', '--out', 'other.checkpoint']);
      assert.equal(code, 1, stderr);
      assert.match(stderr, said);
      assert.deepEqual(await readFile(at('other.checkpoint')), Buffer.from(other));
    });

  it('of this log only', async () => {
    const stranger = new MemoryLog();
    await writeFile(at('other.pub'), formatVerifierKey(stranger.verifierKey));
    await writeFile(at('stranger.checkpoint'), stranger.checkpoint());
    const foreign = await cli.sandbus(['audit', 'checkpoint', '--log-key', 'other.pub']);
    assert.equal(foreign.code, 1);
    assert.match(foreign.stderr, /not signed by sandbus.example\/ledger/);
    const { code, stderr } = await cli.sandbus(['audit', 'checkpoint', '--out', 'stranger.checkpoint']);
    assert.equal(code, 2);
    assert.match(stderr, /stranger.checkpoint is no checkpoint of this log/);
  });
});

describe('one of two kept checkpoints goes on from the other', () => {
  let newest: { size: number; root: Uint8Array };
  const write = (name: string, size: number, root: Uint8Array) =>
    writeFile(at(name), signCheckpoint({ size, root }, loadLogKey(logKeyFiles(cli.system.stateDir))));
  before(async () => {
    await cli.sandbus(['audit', 'checkpoint', '--out', 'first.checkpoint']);
    await cli.sandbus(['run', 'talk.sh']);
    await cli.sandbus(['audit', 'prove', jobId]);
    const { stdout } = await cli.sandbus(['audit', 'checkpoint']);
    await writeFile(at('second.checkpoint'), stdout);
    const parsed = parseCheckpoint(stdout);
    assert.ok(parsed.ok);
    newest = parsed.value;
    await write('forked.checkpoint', newest.size, new Uint8Array(32));
    await write('longer.checkpoint', newest.size + 1000, newest.root);
  });

  const cases: [what: string, older: string, newer: string, code: number, said: RegExp][] = [
    ['when the log has grown', 'first', 'second', 0, /records go on from the \d+ of before/],
    ['when they are the same', 'second', 'second', 0, /records go on from the \d+ of before/],
    ['and not the other way round', 'second', 'first', 1, /cannot hold|roots/],
    ['and not from a fork', 'first', 'forked', 1, /the log is not the one/],
    ['and not to one that the log never had', 'second', 'longer', 1, /the log cannot prove it/],
  ];
  for (const [what, older, newer, expected, said] of cases)
    it(what, async () => {
      const files = [`${older}.checkpoint`, `${newer}.checkpoint`];
      const { code, stdout, stderr } = await cli.sandbus(['audit', 'consistency', ...files]);
      assert.equal(code, expected, stderr);
      assert.match(stdout.toString() + stderr, said);
    });
});

describe('a ledger without its service', () => {
  let log: MemoryLog;
  before(async () => {
    log = await fill(at('ledger.db'), 60, [10, 50]);
    await writeFile(at('ledger.pub'), formatVerifierKey(log.verifierKey));
    await copyFile(at('ledger.db'), at('changed.db'));
    await (await tampering(at('changed.db'))).run(
      'UPDATE record SET signer = ? WHERE sequence = 7',
      'x\u001b[31m',
    );
    await writeFile(at('text.db'), 'no database\n'.repeat(1000));
  });
  const verify = (ledger: string, ...args: string[]) =>
    offline('verify', '--ledger', ledger, '--log-key', 'ledger.pub', ...args);

  it('is whole, and nothing is promised without a checkpoint that was kept', async () => {
    const { code, stdout, stderr } = await verify('ledger.db');
    assert.equal(code, 0, stderr);
    assert.match(
      stdout.toString(),
      /^whole: 60 records of sandbus.example\/ledger; 2 checkpoints agree, the last 10 are not signed yet\nroot: /,
    );
    assert.match(stderr, /No kept checkpoint was given/);
  });

  it('is not whole once it was changed, and where', async () => {
    const { code, stdout, stderr } = await verify('changed.db');
    assert.equal(code, 1);
    assert.match(
      stdout.toString(),
      /^ledger sequence 7: its fields do not give its leaf hash.*\n {4}to do: /,
    );
    assert.match(stderr, /not whole: 1 fault in 60 records/);
    const json = JSON.parse((await verify('changed.db', '--json')).stdout.toString());
    assert.deepEqual([json.ok, json.findings[0].kind, json.findings[0].sequence], [false, 'leaf', 7]);
  });

  const wrong: [what: string, args: readonly string[], said: RegExp][] = [
    ['no file', ['nothing.db'], /there is no ledger/],
    ['another file', ['text.db'], /no SQLite database/],
    ['no key', ['ledger.db', '--log-key', 'nothing.pub'], /cannot read key of the log nothing.pub/],
    ['another key', ['ledger.db', '--log-key', 'text.db'], /a verifier key is/],
    ['no checkpoint', ['ledger.db', '--checkpoint', 'ledger.pub'], /is no checkpoint of this log/],
    ['a ledger and a proof', ['ledger.db', '--proof', 'x'], /--proof needs no --ledger/],
  ];
  for (const [what, [ledger = '', ...args], said] of wrong)
    it(`${what} is wrong use`, async () => {
      const { code, stderr } = await verify(ledger, ...args);
      assert.equal(code, 2, stderr);
      assert.match(stderr, said);
    });
});

it('the log key of a state folder is one line', () => {
  assert.match(
    readFileSync(logKeyFiles(cli.system.stateDir).verifierKey, 'utf8'),
    /^sandbus-ledger\/[0-9a-f]+\+[0-9a-f]{8}\+\S+\n$/,
  );
});
