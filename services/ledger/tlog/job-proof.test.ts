/** Proofs of jobs: what a good one says, and that nothing else passes. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { AuditRecord } from '../../platform/codec.ts';
import type { JobEventKind, JobRef } from '../../platform/topology.ts';
import { MemoryLog } from './fixture.ts';
import type { JobProof, JobVerdict } from './job-proof.ts';
import { checkJobProof, jobProofFormat, proofLeaf, saysWhat, upToTerminal } from './job-proof.ts';
import { leafBytes } from './leaf.ts';
import { inclusionProof } from './proofs.ts';

const job = (last: string): JobRef => ({
  tenant: 'acme',
  jobId: `0198c2f0-0000-7000-8000-0000000000${last}`,
});
const [ran, other, open, cancelledFirst] = [job('01'), job('02'), job('03'), job('04')];

/** Events of several jobs, one between the other. */
const log = new MemoryLog();
const story: [JobRef, JobEventKind][] = [
  [ran, 'submitted'],
  [other, 'submitted'],
  [ran, 'verified'],
  [cancelledFirst, 'cancel-requested'],
  [ran, 'routed'],
  [open, 'submitted'],
  [other, 'rejected'],
  [ran, 'started'],
  [cancelledFirst, 'submitted'],
  [ran, 'finished'],
  [open, 'verified'],
  [cancelledFirst, 'cancelled'],
  [ran, 'superseded'],
];
for (const [of, kind] of story) log.add(of, kind);
const checkpoint = log.checkpoint();

async function proofOf(
  of: JobRef,
  records: readonly AuditRecord[] = upToTerminal(recordsOf(of)),
): Promise<JobProof> {
  const size = log.records.length;
  const leaves = records.map(async (record) =>
    proofLeaf(record, await inclusionProof(log.hashes, record.sequence, size), true),
  );
  return {
    format: jobProofFormat,
    ...of,
    checkpoint: Buffer.from(checkpoint).toString('utf8'),
    leaves: await Promise.all(leaves),
  };
}

const recordsOf = ({ jobId }: JobRef): AuditRecord[] =>
  log.records.filter((record) => record.jobId === jobId);
const check = (proof: unknown, keyring = log.keyring): JobVerdict =>
  checkJobProof(Buffer.from(JSON.stringify(proof)), log.verifierKey, keyring);

function proved(verdict: JobVerdict) {
  assert.ok(verdict.ok, verdict.ok ? '' : verdict.faults.join('\n'));
  return verdict.value;
}

describe('a good proof', () => {
  test('tells the whole job, in order, with its events', async () => {
    const value = proved(check(await proofOf(ran)));
    const kinds = ['submitted', 'verified', 'routed', 'started', 'finished'];
    assert.deepEqual(
      value.events.map(({ kind, sequence, signature }) => [kind, sequence, signature]),
      kinds.map((kind, at) => [kind, [0, 2, 4, 7, 9][at], at === 0 ? 'none' : 'valid']),
    );
    assert.equal(Buffer.from(value.events[4]?.payload ?? []).toString(), `finished of ${ran.jobId}`);
    assert.equal(value.complete, true);
    assert.match(
      saysWhat(value),
      /^Proved: the 5 events .* from submitted \(0\) to finished \(9\) .* is left out\.$/,
    );
  });

  test('of a job that has not ended says so', async () => {
    const value = proved(check(await proofOf(open)));
    assert.equal(value.complete, false);
    assert.match(saysWhat(value), /had not ended: later events may be missing/);
  });

  test('may begin with what was said before the submission', async () => {
    assert.equal(proved(check(await proofOf(cancelledFirst))).complete, true);
  });

  test('without payloads proves the same events', async () => {
    const { leaves, ...rest } = await proofOf(ran);
    const bare = leaves.map(({ payload: _payload, salt: _salt, ...leaf }) => leaf);
    const file = Buffer.from(JSON.stringify({ ...rest, leaves: bare }));
    const value = proved(checkJobProof(file, log.verifierKey));
    assert.equal(value.complete, true);
    assert.deepEqual(new Set(value.events.map(({ payload }) => payload)), new Set([null]));
    assert.deepEqual([...new Set(value.events.map(({ signature }) => signature))], ['none', 'unchecked']);
    const verdict = check({ ...rest, leaves: bare });
    assert.match(
      verdict.ok ? 'proved' : verdict.faults.join('\n'),
      /event 2: its signature cannot be checked/,
    );
  });

  test('needs the public key alone', async () => {
    const file = Buffer.from(JSON.stringify(await proofOf(ran)));
    const value = proved(checkJobProof(file, log.verifierKey));
    assert.equal(value.events[1]?.signature, 'unchecked');
  });
});

type Change = (proof: JobProof) => unknown;
const atLeaf =
  (index: number, change: (leaf: JobProof['leaves'][number]) => object): Change =>
  (proof) => ({ ...proof, leaves: proof.leaves.map((leaf, at) => (at === index ? change(leaf) : leaf)) });
const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64');
const bytesOf = (text: string | undefined): Buffer => Buffer.from(text ?? '', 'base64');
const flipped = (text: string | undefined, at = 0): string => {
  const bytes = bytesOf(text);
  bytes.writeUInt8(bytes.readUInt8(at) ^ 1, at);
  return base64(bytes);
};
/** A leaf that says something else, with all the rest as it was. */
const forged = (change: Partial<AuditRecord>): Change =>
  atLeaf(4, (leaf) => ({
    ...leaf,
    leaf: base64(leafBytes({ ...(recordsOf(ran)[4] as AuditRecord), ...change })),
  }));

const wrong: [what: string, change: Change, fault: RegExp][] = [
  ['another format', (proof) => ({ ...proof, format: 'sandbus-job-proof/2' }), /not of the form/],
  ['an unknown field', (proof) => ({ ...proof, note: '' }), /Unrecognized key/],
  ['an unknown field of a leaf', atLeaf(0, (leaf) => ({ ...leaf, index: 0 })), /Unrecognized key/],
  ['no leaves', (proof) => ({ ...proof, leaves: [] }), /leaves/],
  ['base64 that is not', atLeaf(0, (leaf) => ({ ...leaf, leaf: '@@@@' })), /must be base64/],
  [
    'a path without end',
    atLeaf(0, (leaf) => ({ ...leaf, inclusion: Array(54).fill(leaf.inclusion[0]) })),
    /inclusion/,
  ],
  ['another tenant', (proof) => ({ ...proof, tenant: 'other' }), /is no event of job .* of other/],
  ['another job', (proof) => ({ ...proof, jobId: other.jobId }), /is no event of job/],
  ['no job at all', (proof) => ({ ...proof, jobId: 'x' }), /UUIDv7/],
  [
    'a checkpoint that says more',
    (proof) => ({ ...proof, checkpoint: proof.checkpoint.replace('\n13\n', '\n14\n') }),
    /is not over this text/,
  ],
  ['no checkpoint', (proof) => ({ ...proof, checkpoint: '' }), /no empty line/],
  [
    'the first event left out',
    (proof) => ({ ...proof, leaves: proof.leaves.slice(1) }),
    /not the first event of its job/,
  ],
  ['an event left out', (proof) => ({ ...proof, leaves: proof.leaves.toSpliced(2, 1) }), /some are left out/],
  [
    'an event twice',
    (proof) => ({ ...proof, leaves: proof.leaves.toSpliced(2, 0, ...proof.leaves.slice(2, 3)) }),
    /there twice/,
  ],
  [
    'two events swapped',
    (proof) => ({ ...proof, leaves: [0, 2, 1, 3, 4].map((at) => proof.leaves[at]) }),
    /the order is wrong/,
  ],
  [
    'a changed leaf',
    atLeaf(1, (leaf) => ({ ...leaf, leaf: flipped(leaf.leaf, 20) })),
    /is not what the tree|leaf 2/,
  ],
  [
    'a leaf with something behind it',
    atLeaf(1, (leaf) => ({ ...leaf, leaf: base64(Buffer.concat([bytesOf(leaf.leaf), Buffer.alloc(3)])) })),
    /leaf 2 of the proof/,
  ],
  [
    'a leaf that is another event',
    atLeaf(1, (leaf) => ({ ...leaf, leaf: leaf.payload })),
    /leaf 2 of the proof/,
  ],
  ['another time', forged({ recordedAt: 1_800_000_000_009_001 }), /is not what the tree of 13 has/],
  ['another signer', forged({ signer: 'router' }), /is not what the tree of 13 has/],
  ['another place', forged({ sequence: 10 }), /is not what the tree of 13 has/],
  ['a place beyond the tree', forged({ sequence: 13 }), /leaf 13 is not in a tree of 13/],
  ['a negative place', forged({ sequence: -1 }), /sequence -1/],
  ['a short digest', forged({ payloadHash: new Uint8Array(31) }), /32 bytes/],
  [
    'a changed path',
    atLeaf(3, (leaf) => ({ ...leaf, inclusion: leaf.inclusion.with(1, flipped(leaf.inclusion[1])) })),
    /is not what the tree/,
  ],
  ['no path', atLeaf(3, (leaf) => ({ ...leaf, inclusion: [] })), /too few hashes/],
  [
    'another payload',
    atLeaf(4, (leaf) => ({ ...leaf, payload: flipped(leaf.payload) })),
    /payload is not the one/,
  ],
  ['another salt', atLeaf(4, (leaf) => ({ ...leaf, salt: flipped(leaf.salt) })), /payload is not the one/],
  [
    'salt and payload cut elsewhere',
    atLeaf(4, (leaf) => ({
      ...leaf,
      salt: base64(bytesOf(leaf.salt).subarray(0, 15)),
      payload: base64(Buffer.concat([bytesOf(leaf.salt).subarray(15), bytesOf(leaf.payload)])),
    })),
    /payload is not the one/,
  ],
  ['a payload without its salt', atLeaf(4, ({ salt: _salt, ...leaf }) => leaf), /together or not at all/],
  [
    'another signature',
    atLeaf(4, (leaf) => ({ ...leaf, signature: flipped(leaf.signature, 70) })),
    /signature is not that of key/,
  ],
  [
    'a signature of another service',
    atLeaf(4, (leaf) => ({ ...leaf, signature: base64(recordsOf(ran)[1]?.signature ?? new Uint8Array()) })),
    /signature is not that of key/,
  ],
  ['no signature', atLeaf(4, ({ signature: _signature, ...leaf }) => leaf), /has no signature of executor/],
];

describe('refused is', () => {
  for (const [what, change, fault] of wrong)
    test(what, async () => {
      const verdict = check(change(await proofOf(ran)));
      assert.match(verdict.ok ? 'proved' : verdict.faults.join('\n'), fault);
    });

  test('what goes on after the terminal event', async () => {
    const verdict = check(await proofOf(ran, recordsOf(ran)));
    assert.match(
      verdict.ok ? 'proved' : verdict.faults.join('\n'),
      /goes on after the terminal event finished/,
    );
  });

  test('a job that ended and was never submitted', async () => {
    const lonely = job('05');
    const rogue = new MemoryLog();
    rogue.add(lonely, 'rejected');
    const leaves = rogue.records.map((record) => proofLeaf(record, [], true));
    const note = Buffer.from(rogue.checkpoint()).toString();
    const file = Buffer.from(JSON.stringify({ format: jobProofFormat, ...lonely, checkpoint: note, leaves }));
    const verdict = checkJobProof(file, rogue.verifierKey);
    assert.match(verdict.ok ? 'proved' : verdict.faults.join('\n'), /never submitted/);
  });

  test('an event of a service that is recorded as said by a tenant, even in the log itself', async () => {
    const rogue = log.another();
    for (const kind of ['submitted', 'started'] as const) rogue.add(ran, kind);
    rogue.add(ran, 'finished', Buffer.from('a lie'), 'submitter');
    const leaves = rogue.records.map(async (record) =>
      proofLeaf(record, await inclusionProof(rogue.hashes, record.sequence, 3), true),
    );
    const note = Buffer.from(rogue.checkpoint()).toString();
    const proof = { format: jobProofFormat, ...ran, checkpoint: note, leaves: await Promise.all(leaves) };
    const verdict = check(proof);
    assert.match(verdict.ok ? 'proved' : verdict.faults.join('\n'), /said by submitter, who may not say/);
  });

  test('the proof of another log', async () => {
    const file = Buffer.from(JSON.stringify(await proofOf(ran)));
    const verdict = checkJobProof(file, new MemoryLog().verifierKey);
    assert.match(verdict.ok ? 'proved' : verdict.faults.join('\n'), /not signed by/);
  });

  for (const file of ['', '{', 'null', '[]', '\ufeff{}'])
    test(`the file ${JSON.stringify(file)}`, () => {
      assert.equal(checkJobProof(Buffer.from(file), log.verifierKey).ok, false);
    });
});
