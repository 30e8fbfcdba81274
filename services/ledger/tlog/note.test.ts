/** Signed notes and checkpoints: the examples of the specification, and everything that is not one. */
import assert from 'node:assert/strict';
import { generateKeyPairSync, sign } from 'node:crypto';
import { describe, test } from 'node:test';
import { openCheckpoint, parseCheckpoint, signCheckpoint } from './checkpoint.ts';
import { emptyRoot } from './merkle.ts';
import type { Note } from './note.ts';
import {
  checkNote,
  formatNote,
  formatVerifierKey,
  parseNote,
  parseVerifierKey,
  signNote,
  verifierKeyOf,
} from './note.ts';

const { privateKey } = generateKeyPairSync('ed25519');
const signer = { name: 'sandbus.example/ledger', key: privateKey };
const verifier = verifierKeyOf(signer.name, privateKey);
const stranger = { name: 'witness.example', key: generateKeyPairSync('ed25519').privateKey };

const bytes = (text: string): Uint8Array => Buffer.from(text);
const textOf = (note: Uint8Array): string => Buffer.from(note).toString('utf8');
const opened = (note: Uint8Array | string): Note => {
  const parsed = parseNote(typeof note === 'string' ? bytes(note) : note);
  assert.ok(parsed.ok, parsed.ok ? '' : parsed.reason);
  return parsed.value;
};

/** The example in the documentation of golang.org/x/mod/sumdb/note, of which the specification is made. */
const goKey = 'PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW';
const goNote = `If you think cryptography is the answer to your problem,
then you don't know what your problem is.

— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=
`;

test('a key and a note of another implementation', () => {
  const key = parseVerifierKey(goKey);
  assert.ok(key.ok);
  assert.equal(formatVerifierKey(key.value), goKey);
  assert.deepEqual(checkNote(opened(goNote), [key.value]), { ok: true });
  const changed = checkNote(opened(goNote.replace('answer', 'Answer')), [key.value]);
  assert.match(changed.ok ? '' : changed.reason, /PeterNeumann \(key c74f20a3\) is not over this text/);
});

describe('a verifier key', () => {
  const line = formatVerifierKey(verifier);
  test('is read as it was written', () => {
    const read = parseVerifierKey(`${line}\n`);
    assert.ok(read.ok);
    assert.equal(formatVerifierKey(read.value), line);
  });
  const wrong: [what: string, text: string, reason: RegExp][] = [
    ['nothing', '', /NAME\+KEYID\+KEY/],
    ['another name', line.replace('ledger', 'Ledger'), /not that of this name and key/],
    ['another key id', line.replace(/\+.{8}\+/, '+00000000+'), /not that of this name and key/],
    ['a key of another type', goKey.replace('+AR', '+AB'), /is not Ed25519/],
    ['half a key', line.slice(0, -8), /is not Ed25519|NAME/],
    ['base64 with spaces', `${line.slice(0, -4)} ${line.slice(-4)}`, /NAME\+KEYID\+KEY/],
    ['a PEM file', privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(), /NAME\+KEYID\+KEY/],
  ];
  for (const [what, text, reason] of wrong)
    test(`${what} is refused`, () => {
      const read = parseVerifierKey(text);
      assert.match(read.ok ? 'taken' : read.reason, reason);
    });
  for (const name of ['', 'a b', 'a+b', 'a\u00a0b', 'a\nb', 'x'.repeat(257)])
    test(`${JSON.stringify(name).slice(0, 20)} names no key`, () =>
      assert.throws(() => verifierKeyOf(name, privateKey), /cannot name a key/));
  test('is Ed25519', () => {
    const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    assert.throws(() => verifierKeyOf('log', publicKey), /Ed25519 key is needed, not ec/);
  });
});

describe('a note', () => {
  const note = signNote('one\n\ntwo\n', signer);

  test('is read as it was written, empty lines and all', () => {
    assert.equal(opened(note).text, 'one\n\ntwo\n');
    assert.deepEqual(Buffer.from(formatNote(opened(note))), note);
    assert.deepEqual(checkNote(opened(note), [verifier]), { ok: true });
  });

  test('signatures of unknown keys are kept and say nothing', () => {
    const [witness] = opened(signNote('one\n\ntwo\n', stranger)).signatures;
    assert.ok(witness !== undefined);
    const { text, signatures } = opened(note);
    const both = opened(formatNote({ text, signatures: [witness, ...signatures] }));
    assert.equal(both.signatures.length, 2);
    assert.deepEqual(checkNote(both, [verifier]), { ok: true });
    const alone = checkNote({ text, signatures: [witness] }, [verifier]);
    assert.match(
      alone.ok ? '' : alone.reason,
      /not signed by sandbus.example\/ledger .*signatures of witness.example/,
    );
  });

  test('a wrong signature of a known key beside a good one is a fault', () => {
    const { text, signatures } = opened(note);
    const wrong = {
      name: verifier.name,
      keyId: verifier.keyId,
      signature: sign(null, bytes('x\n'), privateKey),
    };
    const checked = checkNote({ text, signatures: [...signatures, wrong] }, [verifier]);
    assert.equal(checked.ok, false);
  });

  test('a known name with the key id of another is unknown', () => {
    const other = opened(signNote('one\n', { name: signer.name, key: stranger.key }));
    assert.equal(checkNote(other, [verifier]).ok, false);
  });

  const good = textOf(note);
  const line = good.slice(good.indexOf('—'));
  const wrong: [what: string, text: string | Uint8Array, reason: RegExp][] = [
    ['nothing', '', /no empty line/],
    ['text alone', 'one\n', /no empty line/],
    ['no signature', 'one\n\n', /no signatures/],
    ['no text', `\n${line}`, /no empty line|not empty/],
    ['only newlines before the signature', `\n\n${line}`, /not empty/],
    ['a tab', `one\ttwo\n\n${line}`, /control characters/],
    ['carriage returns', `one\r\n\n${line}`, /control characters/],
    ['half a line', good.slice(0, -1), /no signatures/],
    ['a hyphen for the dash', good.replace('—', '-'), /signature 1/],
    ['two spaces', good.replace('— ', '—  '), /signature 1/],
    ['something after the signature', good.replace(/\n$/, ' x\n'), /signature 1/],
    ['URL-safe base64', `one\n\n— log ${'_'.repeat(8)}\n`, /signature 1/],
    ['base64 without its padding', `one\n\n— log AAAAAAA\n`, /signature 1/],
    ['a key id and no signature', `one\n\n— log AAAAAA==\n`, /signature 1/],
    ['text after the signatures', `${good}more\n`, /signature 2/],
    ['101 signatures', `one\n\n${line.repeat(101)}`, /more than 100/],
    ['half a mebibyte', `${'x'.repeat(512 * 1024)}\n\n${line}`, /more than 524288 bytes/],
    ['bytes that are not UTF-8', Uint8Array.of(0xff, 0x0a, 0x0a, 0x0a), /not UTF-8/],
  ];
  for (const [what, text, reason] of wrong)
    test(`${what} is refused`, () => {
      const parsed = parseNote(typeof text === 'string' ? bytes(text) : text);
      assert.match(parsed.ok ? 'taken' : parsed.reason, reason);
    });
  test('a hundred signatures are read', () => {
    assert.equal(opened(`one\n\n${line.repeat(100)}`).signatures.length, 100);
  });
  for (const text of ['', '\n', 'one', 'a\u0000b\n', '\ud800\n'])
    test(`${JSON.stringify(text)} is not signed`, () =>
      assert.throws(() => signNote(text, signer), RangeError));
});

describe('a checkpoint', () => {
  const root = emptyRoot;
  const note = signCheckpoint({ size: 20852163, root }, signer);

  test('has the three lines of the specification', () => {
    const lines = textOf(note).split('\n');
    assert.deepEqual(lines.slice(0, 4), [signer.name, '20852163', Buffer.from(root).toString('base64'), '']);
    const open = openCheckpoint(note, verifier);
    assert.ok(open.ok);
    assert.deepEqual(
      [open.value.origin, open.value.size, open.value.root],
      [signer.name, 20852163, Buffer.from(root)],
    );
  });

  test('the example of the specification is read', () => {
    const example = `example.com/behind-the-sofa
20852163
CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=

— example.com/behind-the-sofa Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=
`;
    const parsed = parseCheckpoint(bytes(example));
    assert.ok(parsed.ok);
    assert.equal(parsed.value.size, 20852163);
  });

  const ofText = (text: string): Uint8Array => signNote(text, signer);
  const root64 = Buffer.from(root).toString('base64');
  const wrong: [what: string, note: Uint8Array, reason: RegExp][] = [
    [
      'by another key',
      signCheckpoint({ size: 1, root }, { ...stranger, name: signer.name }),
      /not signed by/,
    ],
    ['of another log', ofText(`other.example\n1\n${root64}\n`), /of the log other.example/],
    ['without a log', ofText(`\n1\n${root64}\n`), /names no log/],
    ['without a root', ofText(`${signer.name}\n1\n`), /third line/],
    ['with a short root', ofText(`${signer.name}\n1\nAAAA\n`), /third line/],
    ['with leading zeros', ofText(`${signer.name}\n01\n${root64}\n`), /second line/],
    ['with a sign', ofText(`${signer.name}\n+1\n${root64}\n`), /second line/],
    ['beyond 2^53', ofText(`${signer.name}\n9007199254740993\n${root64}\n`), /second line/],
    ['with an empty line', ofText(`${signer.name}\n1\n${root64}\n\nmore\n`), /empty line/],
  ];
  for (const [what, wrongNote, reason] of wrong)
    test(`${what} is refused`, () => {
      const open = openCheckpoint(wrongNote, verifier);
      assert.match(open.ok ? 'taken' : open.reason, reason);
    });

  test('lines of extension are allowed and say nothing', () => {
    assert.equal(openCheckpoint(ofText(`${signer.name}\n1\n${root64}\nmore\n`), verifier).ok, true);
  });

  test('every byte counts', () => {
    for (let at = 0; at < note.length; at += 1) {
      const changed = Uint8Array.from(note, (byte, index) => (index === at ? byte ^ 1 : byte));
      assert.equal(openCheckpoint(changed, verifier).ok, false, `byte ${at}`);
    }
  });

  test('nonsense is not signed', () => {
    assert.throws(() => signCheckpoint({ size: -1, root }, signer), /cannot have -1/);
    assert.throws(() => signCheckpoint({ size: 1, root: root.subarray(1) }, signer), /32 bytes/);
  });
});
