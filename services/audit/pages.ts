/** Pages of records and log chunks. A page stays under half a mebibyte, unless a single item is larger. */
import type { LedgerReader } from '../ledger/store.ts';
import type { AuditItem, AuditPage } from '../platform/codec.ts';
import type { Bus } from '../platform/nats/bus.ts';
import type { JobRef } from '../platform/topology.ts';
import { subjects } from '../platform/topology.ts';
import { recordBytes } from './feed.ts';

/** Under 512 KiB with the page's own frame. */
export const pageBytes = 512 * 1024 - 4096;
/** A sequence and a length before each item. */
const itemOverheadBytes = 24;

/** Collects items until the page is full. An item that is larger than a page gets one of its own. */
class PageBuilder {
  readonly items: AuditItem[] = [];
  readonly #limit: number;
  #bytes = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** False when the item does not fit any more. */
  add(item: AuditItem): boolean {
    const bytes = item.bytes.length + itemOverheadBytes;
    if (this.items.length >= this.#limit) return false;
    if (this.items.length > 0 && this.#bytes + bytes > pageBytes) return false;
    this.items.push(item);
    this.#bytes += bytes;
    return true;
  }

  page(after: number, more: boolean): AuditPage {
    return { items: this.items, next: this.items.at(-1)?.sequence ?? after, more };
  }
}

export interface RecordsQuery {
  readonly after: number;
  readonly jobId: string | undefined;
  readonly limit: number;
  /** What one reply can hold. */
  readonly maxBytes: number;
}

/** Records of the tenant, or of one of its jobs, after a tenant sequence. */
export async function recordsPage(
  store: LedgerReader,
  tenant: string,
  query: RecordsQuery,
): Promise<AuditPage> {
  const { after, jobId, limit, maxBytes } = query;
  const most = { records: limit + 1, bytes: pageBytes };
  const records =
    jobId === undefined
      ? await store.recordsOfTenant(tenant, after, most)
      : await store.recordsOfJob({ tenant, jobId }, after, most);
  const builder = new PageBuilder(limit);
  for (const record of records)
    if (!builder.add({ sequence: record.tenantSequence, bytes: recordBytes(record, maxBytes) }))
      return builder.page(after, true);
  const payloadBytes = records.reduce((sum, { payload }) => sum + (payload?.length ?? 0), 0);
  return builder.page(after, payloadBytes >= pageBytes);
}

/** Log chunks of a job after a sequence of the stream LOGS. Each costs a question to the bus. */
export async function logsPage(
  bus: Pick<Bus, 'nextMessage' | 'identity'>,
  job: JobRef,
  { after, limit }: { after: number; limit: number },
): Promise<AuditPage> {
  const builder = new PageBuilder(limit);
  const subject = subjects.logsOf(job);
  let message = await bus.nextMessage('LOGS', after + 1, subject);
  while (message !== null) {
    // Bytes that are not by the executor are not the job's output.
    const real = bus.identity?.check(message).ok === true;
    if (real && !builder.add({ sequence: message.sequence, bytes: message.data }))
      return builder.page(after, true);
    message = await bus.nextMessage('LOGS', message.sequence + 1, subject);
  }
  return builder.page(after, false);
}

/** As many views, in order, as fit into one reply. */
export function fitting<T, V>(rows: Iterable<T>, limit: number, view: (row: T) => V): V[] {
  const views: V[] = [];
  let bytes = 0;
  for (const row of rows) {
    const one = view(row);
    bytes += Buffer.byteLength(JSON.stringify(one)) + 1;
    if (views.length >= limit || bytes > pageBytes) break;
    views.push(one);
  }
  return views;
}
