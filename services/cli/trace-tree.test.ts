import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { SpanRecord } from '../client/index.ts';
import { renderSpanTree } from './trace-tree.ts';

function span(
  spanId: string,
  parentSpanId: string | null,
  startMs: number,
  more: Partial<SpanRecord> = {},
): SpanRecord {
  const times = { startMs: 1000 + startMs, endMs: 1000 + startMs + 2 };
  return {
    traceId: 't',
    spanId,
    parentSpanId,
    service: 's',
    name: spanId,
    status: 'ok',
    attributes: {},
    ...times,
    ...more,
  };
}

it('a trace is a tree in the order of time, and a failed span says so', () => {
  const spans = [
    span('route', 'verify', 30),
    span('submit', null, 0),
    span('verify', 'submit', 10),
    span('plugin', 'execute', 60, { status: 'error' }),
    span('execute', 'route', 50),
    span('audit.commit', 'verify', 20),
  ];
  const lines = renderSpanTree(spans).trimEnd().split('\n');
  assert.deepEqual(lines, [
    'SPAN              SERVICE       AT    TOOK',
    'submit            s        +0.0 ms  2.0 ms',
    '└ verify          s         +10 ms  2.0 ms',
    '  ├ audit.commit  s         +20 ms  2.0 ms',
    '  └ route         s         +30 ms  2.0 ms',
    '    └ execute     s         +50 ms  2.0 ms',
    '      └ plugin    s         +60 ms  2.0 ms  error',
  ]);
});

it('a span whose parent was not stored stands at the root', () => {
  assert.match(renderSpanTree([span('verify', 'lost', 0)]), /^verify /m);
});
