import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { SpanRecord } from '../client/index.ts';
import { renderWaterfall } from './waterfall.ts';

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
    statusMessage: null,
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
    span('plugin', 'execute', 60, { status: 'error', attributes: { 'error.type': 'exit' } }),
    span('execute', 'route', 50),
    span('audit.commit', 'verify', 20),
  ];
  const lines = renderWaterfall(spans, 86).trimEnd().split('\n');
  assert.deepEqual(lines, [
    'SPAN              SERVICE       AT    TOOK',
    'submit            s        +0.0 ms  2.0 ms  ━',
    '└ verify          s         +10 ms  2.0 ms      ╺━',
    '  ├ audit.commit  s         +20 ms  2.0 ms           ╺╸',
    '  └ route         s         +30 ms  2.0 ms                ╺╸',
    '    └ execute     s         +50 ms  2.0 ms                          ━',
    '      └ plugin    s         +60 ms  2.0 ms                               ━ error: exit',
  ]);
});

it('a span whose parent was not stored stands at the root', () => {
  assert.match(renderWaterfall([span('verify', 'lost', 0)], 80), /^verify /m);
});

it('no bar leaves the terminal, however long or short a span is', () => {
  const spans = [span('whole', null, 0, { endMs: 61_000 }), span('short', 'whole', 59_999.9)];
  for (const width of [60, 80, 100]) {
    const lines = renderWaterfall(spans, width).trimEnd().split('\n');
    assert.ok(Math.max(...lines.map((line) => [...line].length)) <= width, `${width}`);
    assert.match(lines[2] ?? '', /[━╸╺]$/);
  }
});
