/** A trace as a waterfall: its spans as a tree, and beside each a bar for when it was within the whole. */
import type { SpanRecord } from '../client/index.ts';
import { formatMs } from './quantities.ts';
import type { Column } from './table.ts';
import { renderTable } from './table.ts';

/** A terminal that is too narrow for this gets lines that it wraps. */
const narrowestBar = 12;
const widestBar = 80;

interface Line {
  readonly span: SpanRecord;
  /** What of the tree stands before its name. */
  readonly lead: string;
}

/** Children below their parent, in the order in which they began. A span whose parent is not there stands at the root. */
export function renderWaterfall(spans: readonly SpanRecord[], terminalWidth: number): string {
  const lines = linesOf(spans);
  const beganMs = Math.min(...spans.map(({ startMs }) => startMs));
  const endedMs = Math.max(...spans.map(({ endMs }) => endMs));
  const texts = lines.map((line) => textsOf(line, beganMs));
  const right = { align: 'right' as const };
  const columns: Column[] = [
    { title: 'SPAN' },
    { title: 'SERVICE' },
    { title: 'AT', ...right },
    { title: 'TOOK', ...right },
  ];
  const longest = Math.max(
    ...renderTable(columns, texts)
      .split('\n')
      .map((line) => line.length),
  );
  const faults = Math.max(...spans.map((span) => faultOf(span).length));
  const width = Math.min(widestBar, Math.max(narrowestBar, terminalWidth - longest - 2 - faults));
  const scale = { beganMs, wholeMs: Math.max(endedMs - beganMs, 0.001), width };
  const rows = lines.map(({ span }, index) => [
    ...(texts[index] ?? []),
    `${barOf(span, scale)}${faultOf(span)}`,
  ]);
  return renderTable([...columns, { title: '' }], rows);
}

function linesOf(spans: readonly SpanRecord[]): Line[] {
  const inOrder = spans.toSorted((a, b) => a.startMs - b.startMs);
  const ids = new Set(inOrder.map(({ spanId }) => spanId));
  const roots = inOrder.filter(({ parentSpanId }) => parentSpanId === null || !ids.has(parentSpanId));
  return roots.flatMap((root) => linesBelow(root, inOrder, '', ''));
}

function linesBelow(span: SpanRecord, all: readonly SpanRecord[], lead: string, childLead: string): Line[] {
  const children = all.filter(
    ({ parentSpanId, spanId }) => parentSpanId === span.spanId && spanId !== span.spanId,
  );
  const below = children.flatMap((child, index) => {
    const last = index === children.length - 1;
    return linesBelow(child, all, `${childLead}${last ? '└ ' : '├ '}`, `${childLead}${last ? '  ' : '│ '}`);
  });
  return [{ span, lead }, ...below];
}

const textsOf = ({ span, lead }: Line, beganMs: number): string[] => [
  `${lead}${span.name}`,
  span.service,
  `+${formatMs(span.startMs - beganMs)}`,
  formatMs(span.endMs - span.startMs),
];

interface Scale {
  readonly beganMs: number;
  readonly wholeMs: number;
  /** Characters. */
  readonly width: number;
}

/** Half a character is as fine as it gets; a span that is shorter is still seen. */
function barOf({ startMs, endMs }: SpanRecord, { beganMs, wholeMs, width }: Scale): string {
  const halves = 2 * width;
  const at = Math.min(halves - 1, Math.floor(((startMs - beganMs) / wholeMs) * halves));
  const until = Math.max(at + 1, Math.round(((endMs - beganMs) / wholeMs) * halves));
  const cells = Array.from({ length: Math.ceil(until / 2) }, (_, cell) => {
    const left = covers(at, until, 2 * cell);
    const rightHalf = covers(at, until, 2 * cell + 1);
    return left ? (rightHalf ? '━' : '╸') : rightHalf ? '╺' : ' ';
  });
  return cells.join('');
}

const covers = (from: number, until: number, half: number): boolean => half >= from && half < until;

function faultOf({ status, attributes }: SpanRecord): string {
  if (status !== 'error') return '';
  const type = attributes['error.type'];
  return ` error${typeof type === 'string' ? `: ${type}` : ''}`;
}
