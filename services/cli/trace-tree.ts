/** A trace as a tree of spans, with when each began after the first and how long it took. */
import type { SpanRecord } from '../client/index.ts';
import { formatMs } from './quantities.ts';
import { renderTable } from './table.ts';

/** Children below their parent, in the order in which they began. A span whose parent is not there stands at the root. */
export function renderSpanTree(spans: readonly SpanRecord[]): string {
  const inOrder = spans.toSorted((a, b) => a.startMs - b.startMs);
  const ids = new Set(inOrder.map(({ spanId }) => spanId));
  const roots = inOrder.filter(({ parentSpanId }) => parentSpanId === null || !ids.has(parentSpanId));
  const beganMs = inOrder[0]?.startMs ?? 0;
  const rows = roots.flatMap((root) => rowsBelow(root, inOrder, beganMs, '', ''));
  const right = { align: 'right' as const };
  return renderTable(
    [
      { title: 'SPAN' },
      { title: 'SERVICE' },
      { title: 'AT', ...right },
      { title: 'TOOK', ...right },
      { title: '' },
    ],
    rows,
  );
}

function rowsBelow(
  span: SpanRecord,
  all: readonly SpanRecord[],
  beganMs: number,
  lead: string,
  childLead: string,
): string[][] {
  const at = `+${formatMs(span.startMs - beganMs)}`;
  const row = [
    `${lead}${span.name}`,
    span.service,
    at,
    formatMs(span.endMs - span.startMs),
    span.status === 'error' ? 'error' : '',
  ];
  const children = all.filter(
    ({ parentSpanId, spanId }) => parentSpanId === span.spanId && spanId !== span.spanId,
  );
  const below = children.flatMap((child, index) => {
    const last = index === children.length - 1;
    return rowsBelow(
      child,
      all,
      beganMs,
      `${childLead}${last ? '└ ' : '├ '}`,
      `${childLead}${last ? '  ' : '│ '}`,
    );
  });
  return [row, ...below];
}
