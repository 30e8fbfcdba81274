/** What an executor is made of. Put together once, in main.ts. */
import type { JobStates } from '../platform/job-state.ts';
import type { ObjectBucket } from '../platform/nats/objects.ts';
import type { ServiceContext } from '../platform/service.ts';
import type { WatchedFile } from '../platform/watched-file.ts';
import type { EnvelopeMemory, Policy } from '../trust/index.ts';
import type { TrustStoreKeeper } from '../trust-store/keeper.ts';
import type { ExecutorConfig } from './config.ts';
import type { ContentStore } from './content-store.ts';
import type { Inventory } from './inventory.ts';
import type { Launcher } from './launcher.ts';
import type { HostReport } from './launcher-result.ts';
import type { WorkFolder } from './work-folder.ts';

export interface ExecutorParts {
  readonly context: ServiceContext;
  readonly config: ExecutorConfig;
  readonly states: JobStates;
  readonly inventory: Inventory;
  /** What the launcher said of this host when the executor started. */
  readonly host: HostReport;
  readonly launcher: Launcher;
  readonly content: ContentStore;
  readonly folders: WorkFolder;
  readonly artifacts: ObjectBucket;
  readonly trust: TrustStoreKeeper;
  readonly policy: WatchedFile<Policy>;
  readonly memory: EnvelopeMemory;
  /** Aborted when a stopping executor has waited long enough for a bus that is away. */
  readonly giveUp: AbortSignal;
}
