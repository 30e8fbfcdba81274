/** Configuration of the audit service. */
import { join } from 'node:path';
import { z } from 'zod';
import type { LogKeyFiles } from '../ledger/log-key.ts';
import { logKeyFiles } from '../ledger/log-key.ts';
import { ledgerFileIn } from '../ledger/open.ts';
import { queryTokensFile } from '../platform/access-paths.ts';
import type { HostPort } from '../platform/config.ts';
import { commonShape, hostPort, loadConfig, positiveNumber } from '../platform/config.ts';
import type { KeepFor } from './expiry.ts';

export interface AuditConfig {
  /** A file of SQLite, whose lock file lies beside it, or postgres://…, which may hold a password. */
  readonly ledger: string;
  readonly logKey: LogKeyFiles;
  readonly keep: KeepFor;
  /** Where queries are answered, over HTTP; null nowhere. */
  readonly query: { readonly address: HostPort; readonly tokens: string } | null;
  /** Artifacts on their way to a submitter; emptied at each start. */
  readonly downloadFolder: string;
}

const shape = {
  ...commonShape,
  SANDBUS_LEDGER_URL: z
    .string()
    .regex(/^postgres(ql)?:\/\/\S+$/, 'must look like postgres://user@host/database')
    .nullable()
    .default(null),
  SANDBUS_QUERY_ADDRESS: hostPort.nullable().default(null),
  SANDBUS_QUERY_TOKENS: z.string().min(1).nullable().default(null),
  SANDBUS_KEEP_PAYLOAD_DAYS: positiveNumber.nullable().default(null),
  SANDBUS_KEEP_SPAN_DAYS: positiveNumber.nullable().default(null),
  SANDBUS_LEDGER_KEY: z.string().min(1).nullable().default(null),
  SANDBUS_LEDGER_VERIFIER_KEY: z.string().min(1).nullable().default(null),
};

export function auditConfig(): AuditConfig {
  const config = loadConfig(shape);
  const stateDir = config.SANDBUS_STATE_DIR;
  const files = logKeyFiles(stateDir);
  return {
    ledger: config.SANDBUS_LEDGER_URL ?? ledgerFileIn(stateDir),
    logKey: {
      privateKey: config.SANDBUS_LEDGER_KEY ?? files.privateKey,
      verifierKey: config.SANDBUS_LEDGER_VERIFIER_KEY ?? files.verifierKey,
    },
    query:
      config.SANDBUS_QUERY_ADDRESS === null
        ? null
        : {
            address: config.SANDBUS_QUERY_ADDRESS,
            tokens: config.SANDBUS_QUERY_TOKENS ?? queryTokensFile(stateDir),
          },
    keep: {
      payloadDays: config.SANDBUS_KEEP_PAYLOAD_DAYS,
      spanDays: config.SANDBUS_KEEP_SPAN_DAYS,
    },
    downloadFolder: join(stateDir, 'audit-downloads'),
  };
}
