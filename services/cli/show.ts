/** `sandbus show JOB`: the whole record of a job. */
import type { Entry, SpanRecord } from '../client/index.ts';
import type { CliConfig } from './config.ts';
import { loadCliConfig } from './config.ts';
import { exitCode } from './exit-codes.ts';
import type { JobRecord } from './job-record.ts';
import { recordOf } from './job-record.ts';
import { knownJob } from './known-job.ts';
import { print, printJson, say } from './output.ts';
import type { RecordFacts } from './record-text.ts';
import { renderRecord } from './record-text.ts';
import { resultJson } from './results.ts';
import { withClient } from './session.ts';
import { renderWaterfall } from './waterfall.ts';

export interface ShowOptions {
  readonly json?: true;
  readonly trace?: true;
}

export function show(jobId: string, options: ShowOptions): Promise<number> {
  return withClient(async (client) => {
    await knownJob(client, jobId);
    const entries: Entry[] = [];
    for await (const entry of client.records({ jobId, follow: false })) entries.push(entry);
    const record = recordOf(jobId, client.tenant, entries);
    const spans = await client.spans(jobId);
    const last = entries.at(-1)?.record.sequence;
    const standing = last === undefined ? null : await client.standing(last);
    const facts = { owners: await ownersOf(loadCliConfig()), standing, spans: spans.length };
    if (options.json) printJson(recordJson(record, spans, facts));
    else if (options.trace) printTrace(jobId, spans);
    else print(renderRecord(record, facts));
    return exitCode('ok');
  });
}

function printTrace(jobId: string, spans: readonly SpanRecord[]): void {
  if (spans.length === 0) {
    say(`job ${jobId} has no spans (yet)`);
    return;
  }
  print(`trace ${spans[0]?.traceId}\n${renderWaterfall(spans, process.stdout.columns ?? 120)}`);
}

/** Everything: what the text tells, and the events as they are. */
function recordJson(record: JobRecord, spans: readonly SpanRecord[], facts: RecordFacts) {
  const { jobId, tenant, verified, result, entries } = record;
  return {
    jobId,
    tenant,
    traceId: spans[0]?.traceId ?? null,
    signedBy: (verified?.keyIds ?? []).map((keyId) => ({ keyId, owner: facts.owners.get(keyId) ?? null })),
    result: result === null ? null : resultJson(result),
    ledger: facts.standing,
    events: entries.map(({ record: { payload: _bytes, ...rest }, event, fault }) => ({
      ...rest,
      event: event?.value ?? null,
      fault,
    })),
    spans,
  };
}

/** Whose keys they are says the trust store of this machine; without one, nobody. */
async function ownersOf({ trustStore, trustRoot }: CliConfig): Promise<ReadonlyMap<string, string>> {
  const { loadTrustStore } = await import('./signing.ts');
  const store = await loadTrustStore(trustStore, trustRoot).catch(() => null);
  return new Map((store?.keys ?? []).map(({ keyId, owner }) => [keyId, owner]));
}
