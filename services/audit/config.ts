/** Configuration of the audit service. */
import { join } from 'node:path';
import { commonShape, loadConfig } from '../platform/config.ts';

export interface AuditConfig {
  /** The database; its lock file lies beside it. */
  readonly ledgerFile: string;
  /** Artifacts on their way to a submitter; emptied at each start. */
  readonly downloadFolder: string;
}

export function auditConfig(): AuditConfig {
  const { SANDBUS_STATE_DIR } = loadConfig(commonShape);
  return {
    ledgerFile: join(SANDBUS_STATE_DIR, 'ledger.db'),
    downloadFolder: join(SANDBUS_STATE_DIR, 'audit-downloads'),
  };
}
