/** Keys, signatures and the trust store, as a person at a shell uses them. */
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { installation } from '../platform/config.ts';
import { runChild } from '../platform/process.ts';
import { privateKeyToPem } from '../trust/index.ts';
import { generateKey } from '../trust/keys.ts';

let folder = '';
before(() => {
  folder = mkdtempSync(join(tmpdir(), 'sandbus-trust-'));
  writeFileSync(join(folder, 'hello.sh'), 'echo hello\n');
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const mode = 0o600;
  writeFileSync(join(folder, 'olga.pem'), privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode });
  writeFileSync(join(folder, 'olga.pub'), publicKey.export({ type: 'spki', format: 'pem' }));
});
after(() => rmSync(folder, { recursive: true }));

/** Runs a line of shell in the folder, where `sandbus` is the command. */
async function shell(line: string) {
  const script = `cd "$1" && program=$2 && sandbus() { sh "$program" "$@"; } && ${line}`;
  const program = join(installation.root, 'services/cli/sandbus');
  const env = { PATH: '/usr/local/bin:/usr/bin:/bin', SANDBUS_STATE_DIR: join(folder, 'state') };
  const { stdout, stderr, code } = await runChild('sh', ['-c', script, 'sh', folder, program], env);
  return { stdout: stdout.toString(), stderr: stderr.toString(), code };
}

const modeOf = (file: string): string => (statSync(join(folder, file)).mode & 0o777).toString(8);

interface Step {
  readonly line: string;
  readonly code?: number;
  readonly says?: RegExp;
  readonly complains?: RegExp;
}

/** One after the other; each goes on from what the steps before have left. */
const steps: readonly Step[] = [
  { line: 'sandbus trust list', code: 2, complains: /no root key is pinned/ },
  { line: 'sandbus keygen --out me.pem', says: /^key [0-9a-f]{64}\nprivate key: me.pem/ },
  { line: 'sandbus keygen --out me.pem', code: 2, complains: /me.pem.pub: it is there already/ },
  {
    line: 'mv me.pem.pub me.pub; sandbus keygen --out me.pem',
    code: 2,
    complains: /me.pem: it is there already/,
  },
  { line: 'mv me.pub me.pem.pub' },
  {
    line: 'sandbus trust add me.pem.pub --owner me',
    code: 2,
    complains: /make one with `sandbus trust init`/,
  },
  {
    line: 'sandbus trust init',
    says: /version 1: made, signed by root [0-9a-f]{64}.*\nroot key: {3}.*root.pem/,
  },
  { line: 'sandbus trust init', code: 2, complains: /trust.json: it is there already/ },
  { line: 'sandbus trust add me.pem.pub --owner me', says: /version 2: now trusts key [0-9a-f]{64} of me/ },
  {
    line: 'sandbus trust add me.pem.pub --owner twin',
    code: 2,
    complains: /is listed already, of me until 20.*--replace .*`sandbus trust remove`/,
  },
  { line: 'sandbus trust add me.pem --owner me', code: 2, complains: /this is a PRIVATE key/ },
  {
    line: 'sandbus trust add olga.pub --owner "$(printf "O\\314\\210lga")"',
    code: 2,
    complains:
      /"keys.1.owner" must be 1 to 128 letters \(no combining marks\), digits or \(not first\) space \.@_\+-$/,
  },
  { line: 'sandbus sign hello.sh', code: 2, complains: /give --key, or set SANDBUS_SIGNING_KEY/ },
  { line: 'sandbus sign hello.sh --key me.pem', says: /signed by {2}key/ },
  { line: 'sandbus verify hello.sh', says: /verified\n$/ },
  { line: 'sandbus sign hello.sh --key fd:3 3<me.pem && sandbus verify hello.sh', says: /verified\n$/ },
  { line: 'cat me.pem | sandbus sign hello.sh --key fd:0 && sandbus verify hello.sh', says: /verified\n$/ },
  { line: 'SANDBUS_SIGNING_KEY=me.pem sandbus sign hello.sh', says: /signed by/ },
  { line: 'SANDBUS_SIGNING_KEY=fd:4 sandbus sign hello.sh 4<me.pem', says: /signed by/ },
  { line: 'sandbus sign hello.sh --key fd:9', code: 2, complains: /cannot read private key fd:9/ },
  { line: 'sandbus sign hello.sh --key fd:3 3<me.pem.pub', code: 2, complains: /no "BEGIN PRIVATE KEY"/ },
  { line: 'sandbus sign hello.sh --key fd:3 3</dev/zero', code: 2, complains: /more than a key/ },
  { line: 'cat me.pem | sandbus sign hello.sh --key /dev/stdin', complains: /^$/ },
  { line: 'sandbus sign hello.sh --key hello.sh', code: 2, complains: /^sandbus: hello.sh: private key: no/ },
  { line: 'chmod 644 me.pem; sandbus sign hello.sh --key me.pem', complains: /others may read .*chmod 600/ },
  {
    line: 'sandbus sign hello.sh --key /dev/stdin <me.pem',
    complains: /others may read .*chmod 600 \/.*\/me\.pem`$/,
  },
  { line: 'chmod 600 me.pem; cp hello.sh other.sh; cp hello.sh.dsse.json other.sh.dsse.json' },
  { line: 'sandbus verify other.sh', code: 1, says: /^NAME_MISMATCH: / },
  {
    line: 'echo more >>other.sh; sandbus sign other.sh --add --key me.pem',
    code: 2,
    complains: /is about a file/,
  },
  {
    line: "sandbus trust add olga.pub --owner Olga --plugins 'build-*'",
    says: /version 3/,
  },
  {
    line: 'sandbus sign hello.sh --key olga.pem && sandbus verify hello.sh',
    code: 1,
    says: /OUT_OF_SCOPE: /,
  },
  { line: 'sandbus sign hello.sh --key me.pem --add && sandbus verify hello.sh', says: /verified\n$/ },
  {
    line: 'sandbus trust revoke --digest $(sha256sum other.sh | cut -c1-64)',
    says: /version 4: now refuses file/,
  },
  { line: 'sandbus sign other.sh --key me.pem && sandbus verify other.sh', code: 1, says: /REVOKED: / },
  {
    line: 'sandbus trust renew --expires 2020-01-01',
    code: 2,
    complains: /--expires: 2020-01-01 is over: it was 2020-01-01 00:00:00 UTC/,
  },
  { line: 'sandbus trust renew --expires 30d', says: /version 5: now expires/ },
  {
    line: 'sandbus trust renew --root-key me.pem',
    code: 2,
    complains: /is not among the roots|has not signed/,
  },
  { line: 'sandbus trust renew --root-key fd:3 3<state/root.pem', says: /version 6/ },
  {
    line: 'mv state/root.pem offline.pem; sandbus trust renew',
    code: 2,
    complains: /no root key .*--root-key/,
  },
  { line: 'SANDBUS_ROOT_KEY=offline.pem sandbus trust renew', says: /version 7/ },
  { line: 'sandbus keygen --out second.pem && cp state/trust.json before.json' },
  {
    line: 'sandbus trust rotate --root-key offline.pem --new-root-key second.pem',
    says: /version 7: now of root [0-9a-f]{64}; sign further changes with --root-key second.pem/,
  },
  { line: 'sandbus trust renew --root-key offline.pem', code: 2, complains: /was replaced by root/ },
  {
    line: 'sandbus trust rotate --root-key second.pem --new-root-key offline.pem',
    code: 2,
    complains: /is, or was, a root/,
  },
  { line: 'sandbus trust renew --root-key second.pem', says: /version 8/ },
  { line: 'sandbus trust list', says: /signed by root [0-9a-f]{64}, after [0-9a-f]{64}/ },
  { line: 'SANDBUS_TRUST_ROOT="$(cat second.pem.pub)" sandbus verify hello.sh', says: /verified/ },
  {
    line: 'sandbus verify hello.sh --trust-root me.pem.pub',
    code: 2,
    complains: /pinned root .* is not among/,
  },
  {
    line: 'sandbus trust revoke 0000 --root-key second.pem',
    code: 2,
    complains: /no listed key begins with 0000/,
  },
  { line: 'sandbus trust list --json', says: /"roots":\["[0-9a-f]{64}","[0-9a-f]{64}"\]/ },
];

const inForce = 'export SANDBUS_ROOT_KEY=second.pem;';
const addMe = `${inForce} sandbus trust add me.pem.pub --owner me`;
const idOf = (owner: string) => `$(sandbus trust list | grep ' ${owner} ' | cut -c1-12)`;

/** Goes on from there: the entry of a key is changed, taken off, put back; only what is revoked stays so. */
const changesOfKeys: readonly Step[] = [
  {
    line: `${addMe} --plugins 'build-*' --gpu --expires 2035-01-01 --replace`,
    says: /version 9: changed key [0-9a-f]{64}\nwas: me, plugins \*, tenants \*, 20.* UTC\nis: {2}me, plugins build-\*, tenants \*, gpu, 20.* to 2035-01-01 00:00:00 UTC\n$/,
  },
  { line: 'sandbus sign hello.sh --key me.pem && sandbus verify hello.sh', code: 1, says: /OUT_OF_SCOPE: / },
  { line: `${addMe} --not-before 2035-01-01 --expires 2035-06-01 --replace`, says: /version 10: / },
  { line: 'sandbus verify hello.sh', code: 1, says: /NOT_YET_VALID: key / },
  { line: 'sandbus trust list', says: /me .*2035-06-01 {2}from 2035-01-01\n/ },
  { line: `${addMe} --replace`, says: /version 11: / },
  { line: 'sandbus verify hello.sh', says: /verified\n$/ },
  {
    line: `${inForce} sandbus trust remove ${idOf('me')}`,
    says: /version 12: no longer lists key [0-9a-f]{64} of me\n/,
  },
  { line: 'sandbus verify hello.sh', code: 1, says: /UNKNOWN_KEY: / },
  { line: `${inForce} sandbus trust remove 0000`, code: 2, complains: /no listed key begins with 0000/ },
  { line: `${addMe} --replace`, code: 2, complains: /is not listed: leave out --replace/ },
  { line: addMe, says: /version 13: now trusts key [0-9a-f]{64} of me\n/ },
  { line: 'sandbus verify hello.sh', says: /verified\n$/ },
  { line: `${inForce} sandbus trust revoke ${idOf('me')}`, says: /version 14: now refuses key/ },
  { line: `${addMe} --replace`, code: 2, complains: /is revoked, which is for good/ },
  {
    line: `${inForce} sandbus trust remove ${idOf('me')}`,
    says: /version 15: no longer lists key [0-9a-f]{64} of me, which stays revoked\n/,
  },
  { line: addMe, code: 2, complains: /is revoked, which is for good/ },
  { line: 'sandbus verify hello.sh', code: 1, says: /REVOKED: / },
  {
    line: `${inForce} sandbus trust remove ${idOf('Olga')}`,
    says: /of Olga; it trusts nobody any more, so nothing runs/,
  },
];

describe('from the first key to the second root', () => {
  for (const { line, code = 0, says = /^/, complains = /^$|warning/ } of [...steps, ...changesOfKeys])
    test(line, async () => {
      const result = await shell(line);
      assert.equal(result.code, code, result.stderr);
      assert.match(result.stdout, says);
      assert.match(result.stderr.trim(), complains);
    });

  test('private keys are for their owner alone', () => {
    assert.deepEqual(['me.pem', 'second.pem', 'offline.pem'].map(modeOf), ['600', '600', '600']);
  });
});

test('a store that somebody else has changed is not signed again', async () => {
  const file = join(folder, 'state/trust.json');
  const json = JSON.parse(readFileSync(file, 'utf8'));
  const content = JSON.parse(Buffer.from(json.store.payload, 'base64').toString());
  json.store.payload = Buffer.from(JSON.stringify({ ...content, threshold: 8 })).toString('base64');
  writeFileSync(file, JSON.stringify(json));
  const { code, stderr } = await shell('sandbus trust renew --root-key second.pem');
  assert.equal(code, 2);
  assert.match(stderr, /has not signed this content/);
});

test('a plugin of 100 MB is signed and checked in the memory that a small one takes', async () => {
  const head = readFileSync(process.execPath).subarray(0, 64);
  for (const [name, size] of Object.entries({ small: 4096, large: 100_000_000 })) {
    writeFileSync(join(folder, name), head);
    truncateSync(join(folder, name), size);
  }
  writeFileSync(join(folder, 'key.pem'), privateKeyToPem(generateKey()), { mode: 0o600 });
  const [small, large] = [await peakOf('small'), await peakOf('large')];
  assert.ok(large < small + 32 * 1024, `${small} KiB for 4 KiB, ${large} KiB for 100 MB`);
});

/** The most memory that a process had, in KiB, which did nothing but sign this file. */
async function peakOf(name: string): Promise<number> {
  const cli = join(installation.root, 'services/cli');
  const code = `
    const { signFile } = await import('${cli}/signing.ts');
    const { loadPrivateKey } = await import('${cli}/private-keys.ts');
    await signFile('${folder}/${name}', await loadPrivateKey('${folder}/key.pem'), '${folder}/${name}.dsse.json', {});
    console.log(process.resourceUsage().maxRSS);`;
  const { stdout, stderr } = await runChild(process.execPath, ['--input-type=module', '-e', code], {});
  assert.match(stdout.toString(), /^\d+\n$/, stderr.toString());
  return Number(stdout);
}
