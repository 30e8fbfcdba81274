/** The audit service: commits every event to the ledger before it is acked, feeds AUDIT, keeps spans, answers readers. */
import { Ledger } from '../ledger/ledger.ts';
import { loadLogKey } from '../ledger/log-key.ts';
import { claimWriter, isPostgres } from '../ledger/open.ts';
import type { LedgerReader, LedgerWriter } from '../ledger/store.ts';
import type { Signer } from '../ledger/tlog/note.ts';
import type { Loop } from '../platform/consume.ts';
import { consume } from '../platform/consume.ts';
import { deadLetterTo } from '../platform/dead-letter.ts';
import { messageOf, OperationalError } from '../platform/errors.ts';
import { parseTokens } from '../platform/query-tokens.ts';
import type { RunningService, ServiceContext, StartService } from '../platform/service.ts';
import { consumers, requestFilters } from '../platform/topology.ts';
import { WatchedFile } from '../platform/watched-file.ts';
import { Answers } from './answers.ts';
import { catchUp } from './catch-up.ts';
import { Checkpoints } from './checkpoints.ts';
import { CommitSpans } from './commit-spans.ts';
import { Committer } from './committer.ts';
import type { AuditConfig } from './config.ts';
import { auditConfig } from './config.ts';
import { Downloads } from './downloads.ts';
import { Expiry } from './expiry.ts';
import { Feed } from './feed.ts';
import type { Recorder } from './handler.ts';
import { recorder, spanHandler } from './handler.ts';
import { operate } from './operate.ts';
import { Outbox } from './outbox.ts';
import { serveQueries } from './query/server.ts';
import { auditRead, wakeReaders } from './requests.ts';
import { Retention } from './retention.ts';
import { serveWhenClaimed } from './standby.ts';
import { takeOver } from './take-over.ts';
import { Waiters } from './waiters.ts';

/** Messages of a stream on their way to one commit: one batch is committed while the next ones arrive and are checked. */
const slots = { submissions: 1024, jobs: 2048 };
const batch = 256;
const spanSlots = 32;
const pollLimits = { total: 4096, perTenant: 512 };

export const start: StartService = (context) => startAudit(context, auditConfig());

/** Stands by while another audit service writes this ledger. `prepare` is for tests that shrink the database. */
export async function startAudit(
  context: ServiceContext,
  config: AuditConfig,
  prepare: (store: LedgerWriter) => void = () => undefined,
): Promise<RunningService> {
  const signer = loadLogKey(config.logKey);
  const serve = async (store: LedgerWriter) => {
    try {
      prepare(store);
      return await run(context, config, signer, store);
    } catch (error) {
      await store.close();
      throw error;
    }
  };
  return serveWhenClaimed({
    claim: () => claimWriter(config.ledger),
    serve,
    isPatient: isPostgres(config.ledger),
    log: context.log,
  });
}

async function run(
  context: ServiceContext,
  config: AuditConfig,
  signer: Signer,
  store: LedgerWriter,
): Promise<RunningService> {
  const { bus, log, telemetry, clock } = context;
  const ledger = await Ledger.open(store);
  const feed = new Feed(bus);
  await catchUpIfPossible(ledger, feed, context);
  await bus.identity?.prepareAside();
  const waiters = new Waiters(pollLimits);
  const turn = () => committer.letCommitsGoFirst();
  const spans = new CommitSpans(store, telemetry, log, turn);
  const beside = background({ context, config, ledger, feed, signer, turn });
  const committer = new Committer({
    ...{ bus, ledger, clock },
    onCommitted: (committed) => {
      wakeReaders(waiters, committed);
      spans.add(committed, clock.nowMs());
      for (const worker of beside.ofCommits) worker.wake();
    },
  });
  const downloads = new Downloads(config.downloadFolder, () => bus.objects('artifacts'));
  await downloads.start();
  const workers = [...beside.ofCommits, beside.expiry, spans.worker];
  for (const worker of workers) worker.wake();
  const queries = await startQueries(context, config, store);
  const record = recorder(bus, committer);
  await takeOver(bus, record, log);
  const loops = startLoops(context, record, store);
  const answers = new Answers(context);
  answers.serve(requestFilters.auditRead, (request) => auditRead({ bus, store, waiters }, request));
  answers.serve(requestFilters.auditOperate, (request) => operate({ store, log }, request));
  answers.serve(requestFilters.download, (request) => downloads.serve(request));
  return {
    failed: Promise.race([...[...loops, ...workers].map(({ failed }) => failed), store.lost]),
    stop: async () => {
      waiters.close();
      await Promise.all([answers.stop(), queries?.stop(), ...loops.map((loop) => loop.stop())]);
      await Promise.all([...workers.map((worker) => worker.stop()), downloads.stop()]);
      await spans.flush().catch((error: unknown) => log.warn({ error: messageOf(error) }, 'spans are lost'));
      // Published when the service starts again.
      await beside.checkpoints
        .finish()
        .catch((error: unknown) => log.warn({ error: messageOf(error) }, 'the last records are not signed'));
      await store.close();
    },
  };
}

interface BackgroundParts {
  readonly context: ServiceContext;
  readonly config: AuditConfig;
  readonly ledger: Ledger;
  readonly feed: Feed;
  readonly signer: Signer;
  readonly turn: () => Promise<void>;
}

/** What is done beside the commits: some of it because of each. */
function background({ context, config, ledger, feed, signer, turn }: BackgroundParts) {
  const { bus, log, clock } = context;
  const { store } = ledger;
  const outbox = new Outbox({ feed, store, origin: signer.name, log, turn });
  const retention = new Retention(bus, ledger, log, turn);
  const onSigned = () => outbox.worker.wake();
  const checkpoints = new Checkpoints({ ledger, signer, clock, log, onSigned });
  const expiry = new Expiry({ store, keep: config.keep, clock, log });
  const ofCommits = [outbox.worker, checkpoints.worker, retention.worker];
  return { ofCommits, expiry: expiry.worker, checkpoints };
}

/** Over HTTP, where that is configured. They get the reader's part of the store alone. */
async function startQueries({ log, clock }: ServiceContext, { query }: AuditConfig, store: LedgerReader) {
  if (query === null) return null;
  const tokens = new WatchedFile(query.tokens, parseTokens, log);
  const served = await serveQueries({ store, tokens: () => tokens.current(), clock, log }, query.address);
  log.info({ url: served.url }, 'queries are answered');
  if (!/^(127\.|localhost$)/.test(query.address.host))
    log.warn({ url: served.url }, 'queries leave this machine, and this is plain HTTP: put TLS before it');
  return served;
}

/** A feed that is away may come later; a feed that is ahead of the ledger for good ends the start. */
async function catchUpIfPossible(ledger: Ledger, feed: Feed, { log }: ServiceContext): Promise<void> {
  try {
    await catchUp(ledger, feed, log);
  } catch (error) {
    if (!(error instanceof OperationalError)) throw error;
    log.warn({ code: error.code, error: error.message }, 'the feed cannot be reached yet');
  }
}

function startLoops({ bus, log, clock }: ServiceContext, record: Recorder, store: LedgerWriter): Loop[] {
  const deadLetter = deadLetterTo(bus, 'audit', () => clock.nowMs());
  const parts = { bus, log, deadLetter, maxDeliveries: Number.POSITIVE_INFINITY, confirmsAcks: false };
  return [
    consume({
      ...parts,
      consumer: consumers.auditSubmissions,
      handler: record,
      slots: slots.submissions,
      batch,
    }),
    consume({ ...parts, consumer: consumers.auditJobs, handler: record, slots: slots.jobs, batch }),
    consume({
      ...parts,
      consumer: consumers.auditTraces,
      handler: spanHandler(bus, store, clock),
      slots: spanSlots,
    }),
  ];
}
