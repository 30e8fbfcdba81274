/**
 * What proving costs in a large ledger: a million synthetic events in a temporary SQLite database, then, in a process of
 * its own, verification of the whole (seconds, records a second, largest resident set) and proofs of jobs (milliseconds).
 *
 *   npm run bench:proofs [-- --events 1000000]
 */
import { spawnSync } from 'node:child_process';
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { limitYoungGeneration } from '../../services/cli/young-generation.ts';
import { jobKey } from '../../services/ledger/keys.ts';
import { claimWriter, openReader } from '../../services/ledger/open.ts';
import { afterRecord } from '../../services/ledger/projection.ts';
import { proveJob } from '../../services/ledger/prove.ts';
import type { JobRow, LedgerReader, LedgerWriter, NewRecord, Subtree } from '../../services/ledger/store.ts';
import { signCheckpoint } from '../../services/ledger/tlog/checkpoint.ts';
import { CompactRange } from '../../services/ledger/tlog/compact-range.ts';
import { checkJobProof } from '../../services/ledger/tlog/job-proof.ts';
import { sealed } from '../../services/ledger/tlog/leaf.ts';
import { formatVerifierKey, parseVerifierKey, verifierKeyOf } from '../../services/ledger/tlog/note.ts';
import { verifyLedger } from '../../services/ledger/verify.ts';
import type { JobEventKind, JobRef } from '../../services/platform/topology.ts';
import { authors, subjects } from '../../services/platform/topology.ts';

const kinds: readonly JobEventKind[] = ['submitted', 'verified', 'routed', 'started', 'finished'];
const batchRecords = 5000;
/** Jobs that are under way at the same time. */
const abreast = 20;
/** About what an event of the demo has. */
const payloadBytes = 700;
const signer = { name: 'bench.example/ledger', key: generateKeyPairSync('ed25519').privateKey };

async function bench(events: number): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'sandbus-bench-proofs-'));
  try {
    await fill(join(folder, 'ledger.db'), events);
    writeFileSync(join(folder, 'log.vkey'), formatVerifierKey(verifierKeyOf(signer.name, signer.key)));
    const megabytes = statSync(join(folder, 'ledger.db')).size / 1e6;
    console.log(`${events} events, ${megabytes.toFixed(0)} MB`);
    const args = [import.meta.filename, 'measure', folder, '--events', String(events)];
    process.exitCode = spawnSync(process.execPath, args, { stdio: 'inherit' }).status ?? 1;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function measure(folder: string, events: number): Promise<void> {
  const key = parseVerifierKey(readFileSync(join(folder, 'log.vkey'), 'utf8'));
  if (!key.ok) throw new Error(key.reason);
  const reader = await openReader(join(folder, 'ledger.db'));
  console.log(`bare reading of all records: ${await bareReading(reader)} s of processor time`);
  const spent = process.cpuUsage();
  const began = performance.now();
  const { ok, size, checkpoints } = await verifyLedger(reader, {
    key: key.value,
    onProgress: limitYoungGeneration,
  });
  const seconds = (performance.now() - began) / 1000;
  const { user, system } = process.cpuUsage(spent);
  const megabytes = process.resourceUsage().maxRSS / 1000;
  console.log(
    `verify: ${seconds.toFixed(1)} s, ${((user + system) / 1e6).toFixed(1)} s of processor time, ` +
      `${Math.round(size / seconds)} records/s, ${checkpoints} checkpoints, ` +
      `peak ${megabytes.toFixed(0)} MB; ${ok ? 'whole' : 'NOT WHOLE'}`,
  );
  const times: number[] = [];
  for (let at = 0; at < 200; at += 1) {
    const job = jobOf(Math.floor((events / kinds.length / 200) * at));
    const start = performance.now();
    const proof = await proveJob(reader, job);
    times.push(performance.now() - start);
    const verdict = checkJobProof(Buffer.from(JSON.stringify(proof)), key.value);
    if (!verdict.ok || !verdict.value.complete) throw new Error(`the proof of ${job.jobId} is not good`);
  }
  times.sort((a, b) => a - b);
  const of = (share: number) => (times[Math.floor(share * (times.length - 1))] ?? 0).toFixed(1);
  console.log(
    `prove: ${of(0.5)} ms at the median, ${of(0.99)} ms at most for 99 of 100, ${of(1)} ms at the worst, of ${times.length}`,
  );
  await reader.close();
}

/** What nobody who looks at each record can save. */
async function bareReading(reader: LedgerReader): Promise<string> {
  const spent = process.cpuUsage();
  for (let [from, more] = [0, true]; more; ) {
    const records = await reader.records(from, { records: 100, bytes: 4 * 1024 * 1024 });
    limitYoungGeneration();
    more = records.length > 0;
    from = (records.at(-1)?.sequence ?? 0) + 1;
  }
  const { user, system } = process.cpuUsage(spent);
  return ((user + system) / 1e6).toFixed(1);
}

function jobOf(number: number): JobRef {
  return {
    tenant: `tenant-${number % 7}`,
    jobId: `0198c2f0-0000-7000-8000-${number.toString(16).padStart(12, '0')}`,
  };
}

async function fill(location: string, events: number): Promise<void> {
  const writer = await claimWriter(location);
  if (writer === null) throw new Error('the database has a writer');
  const range = CompactRange.empty();
  const maker = new Records();
  for (let size = 0; size < events; size = range.size) {
    const records: NewRecord[] = [];
    const subtrees: Subtree[] = [];
    const jobs = new Map<string, JobRow>();
    const onto = maker.head;
    for (let at = size; at < Math.min(events, size + batchRecords); at += 1) {
      const { record, job } = maker.next(at);
      records.push({ record, epoch: 0 });
      jobs.set(jobKey(record), job);
      range.append(record.leafHash, (level, number, hash) => void subtrees.push({ level, number, hash }));
    }
    await writer.commit({
      ...{ onto, records, subtrees, jobs: [...jobs.values()] },
      ...{ duplicates: [], epochs: new Map(), deletions: [], endedJobs: [] },
    });
    await sign(writer, range);
    if (process.stderr.isTTY) process.stderr.write(`\rmaking events: ${range.size}`);
  }
  await writer.close();
}

async function sign(writer: LedgerWriter, range: CompactRange): Promise<void> {
  const head = { size: range.size, root: range.root() };
  const checkpoint = {
    treeSize: head.size,
    rootHash: head.root,
    at: head.size,
    note: signCheckpoint(head, signer),
  };
  await writer.addCheckpoint(checkpoint);
}

/** Events of jobs of which some are under way at one time, chained as the service does. */
class Records {
  head = { size: 0, lastLeafHash: new Uint8Array() as Uint8Array };
  readonly #tenants = new Map<string, number>();
  readonly #jobs = new Map<string, JobRow>();

  next(sequence: number) {
    const round = abreast * kinds.length;
    const kind = kinds[Math.floor((sequence % round) / abreast)] ?? 'submitted';
    const job = jobOf(Math.floor(sequence / round) * abreast + (sequence % abreast));
    const tenantSequence = this.#tenants.get(job.tenant) ?? 0;
    this.#tenants.set(job.tenant, tenantSequence + 1);
    const subject =
      kind === 'routed'
        ? subjects.work({ runtime: 'bash', deviceClass: 'cpu' }, job)
        : subjects.job(kind, job);
    const author =
      kind === 'submitted'
        ? 'submitter'
        : (authors.get(kind === 'routed' ? 'work' : `job.${kind}`)?.[0] ?? '');
    const before = this.#jobs.get(jobKey(job)) ?? null;
    const record = sealed(
      {
        ...{ ...job, sequence, tenantSequence, kind, subject, signer: author },
        recordedAt: 1_800_000_000_000_000 + sequence,
        eventId: `${author}:${kind}:${job.jobId}:JOBS:${sequence + 1}`,
        ...{ signature: author === 'submitter' ? null : randomBytes(72), traceparent: null },
        ...{ stream: 'JOBS', streamSequence: sequence + 1 },
        previousLeafHash: before?.lastLeafHash ?? new Uint8Array(),
      },
      randomBytes(payloadBytes),
    );
    const after = afterRecord(before, record);
    if (kind === 'finished') this.#jobs.delete(jobKey(job));
    else this.#jobs.set(jobKey(job), after);
    this.head = { size: sequence + 1, lastLeafHash: record.leafHash };
    return { record, job: after };
  }
}

const { values, positionals } = parseArgs({
  options: { events: { type: 'string', default: '1000000' } },
  allowPositionals: true,
});
if (positionals[0] === 'measure') await measure(positionals[1] ?? '', Number(values.events));
else await bench(Number(values.events));
