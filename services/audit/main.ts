/** The audit service: commits every event to the ledger before it is acked, feeds AUDIT, keeps spans, answers readers. */
import type { DatabaseSync } from 'node:sqlite';
import type { Loop } from '../platform/consume.ts';
import { consume } from '../platform/consume.ts';
import { deadLetterTo } from '../platform/dead-letter.ts';
import { OperationalError } from '../platform/errors.ts';
import type { RunningService, ServiceContext, StartService } from '../platform/service.ts';
import { consumers, requestFilters } from '../platform/topology.ts';
import { Answers } from './answers.ts';
import { Committer } from './committer.ts';
import type { AuditConfig } from './config.ts';
import { auditConfig } from './config.ts';
import { lockForWriting, openDatabase } from './database.ts';
import { Downloads } from './downloads.ts';
import { eventHandler, spanHandler } from './handler.ts';
import { Ledger } from './ledger.ts';
import { Outbox } from './outbox.ts';
import { auditRead, wakeReaders } from './requests.ts';
import { Retention } from './retention.ts';
import { SpanStore } from './span-store.ts';
import { Waiters } from './waiters.ts';

/** Messages of a stream on their way to one commit. */
const slots = 256;
const spanSlots = 32;
const pollLimits = { total: 4096, perTenant: 512 };

export const start: StartService = (context) => startAudit(context, auditConfig());

/** `prepare` is for tests that shrink the database. */
export async function startAudit(
  context: ServiceContext,
  config: AuditConfig,
  prepare: (database: DatabaseSync) => void = () => undefined,
): Promise<RunningService> {
  const lock = lockForWriting(config.ledgerFile);
  const database = openDatabase(config.ledgerFile);
  prepare(database);
  const close = () => {
    database.close();
    lock.close();
  };
  try {
    return await run(context, config, database, close);
  } catch (error) {
    close();
    throw error;
  }
}

async function run(context: ServiceContext, config: AuditConfig, database: DatabaseSync, close: () => void) {
  const { bus, log, telemetry, clock } = context;
  const ledger = new Ledger(database);
  const spans = new SpanStore(database);
  const waiters = new Waiters(pollLimits);
  const outbox = new Outbox(bus, ledger.records, database, log);
  const retention = new Retention(bus, ledger, database, log);
  const downloads = new Downloads(config.downloadFolder, () => bus.objects('artifacts'));
  const committer = new Committer({
    ...{ bus, ledger, telemetry, clock },
    onCommitted: (records) => {
      wakeReaders(waiters, records);
      outbox.worker.wake();
      retention.worker.wake();
    },
  });
  await locate(outbox, context);
  await downloads.start();
  outbox.worker.wake();
  retention.worker.wake();
  const loops = startLoops(context, committer, spans);
  const answers = new Answers(context);
  answers.serve(requestFilters.auditRead, (request) => auditRead({ bus, ledger, spans, waiters }, request));
  answers.serve(requestFilters.download, (request) => downloads.serve(request));
  return {
    failed: Promise.race([
      ...loops.map((loop) => loop.failed),
      outbox.worker.failed,
      retention.worker.failed,
    ]),
    stop: async () => {
      waiters.close();
      await Promise.all([answers.stop(), ...loops.map((loop) => loop.stop())]);
      await Promise.all([outbox.worker.stop(), retention.worker.stop(), downloads.stop()]);
      close();
    },
  };
}

/** A feed that is away may come later; a feed that is ahead of the ledger ends the start. */
async function locate(outbox: Outbox, { log }: ServiceContext): Promise<void> {
  try {
    await outbox.locate();
  } catch (error) {
    if (!(error instanceof OperationalError)) throw error;
    log.warn({ code: error.code, error: error.message }, 'the feed cannot be reached yet');
  }
}

function startLoops({ bus, log, clock }: ServiceContext, committer: Committer, spans: SpanStore): Loop[] {
  const deadLetter = deadLetterTo(bus, 'audit', () => clock.nowMs());
  const parts = { bus, log, deadLetter, maxDeliveries: Number.POSITIVE_INFINITY };
  const events = eventHandler(bus, committer);
  return [
    consume({ ...parts, consumer: consumers.auditSubmissions, handler: events, slots }),
    consume({ ...parts, consumer: consumers.auditJobs, handler: events, slots }),
    consume({
      ...parts,
      consumer: consumers.auditTraces,
      handler: spanHandler(bus, spans, clock),
      slots: spanSlots,
    }),
  ];
}
