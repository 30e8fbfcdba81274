import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { PoisonError } from '../platform/errors.ts';
import { parseSpans } from './spans.ts';

const good = {
  traceId: '0af7651916cd43dd8448eb211c80319c',
  spanId: 'b7ad6b7169203331',
  parentSpanId: '00f067aa0ba902b7',
  name: 'execute',
  kind: 5,
  startTimeUnixNano: '1700000000123456789',
  endTimeUnixNano: '1700000001000000000',
  status: { code: 2, message: 'killed' },
  attributes: [
    { key: 's', value: { stringValue: 'text' } },
    { key: 'i', value: { intValue: '7' } },
    { key: 'j', value: { intValue: 8 } },
    { key: 'd', value: { doubleValue: 1.5 } },
    { key: 'b', value: { boolValue: false } },
    { key: 'a', value: { arrayValue: { values: [{ stringValue: 'x' }, { intValue: 1 }] } } },
    { key: 'k', value: { kvlistValue: { values: [] } } },
  ],
};
const batch = (...spans: object[]) => ({
  resourceSpans: [
    {
      resource: { attributes: [{ key: 'service.name', value: { stringValue: 'executor' } }] },
      scopeSpans: [{ scope: { name: 'sandbus' }, spans }],
    },
  ],
});
const parse = (value: unknown) =>
  parseSpans(Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)));

test('a span as OTLP writes it', () => {
  assert.deepEqual(parse(batch(good)), [
    {
      traceId: good.traceId,
      spanId: good.spanId,
      parentSpanId: good.parentSpanId,
      service: 'executor',
      name: 'execute',
      kind: 5,
      startMicros: 1700000000123456,
      endMicros: 1700000001000000,
      status: 'error',
      statusMessage: 'killed',
      attributes: { s: 'text', i: 7, j: 8, d: 1.5, b: false, a: ['x', 1], k: null },
      links: [],
    },
  ]);
});

describe('what is no span is poison', () => {
  for (const bad of [
    '',
    '{',
    'null',
    '[]',
    '{"resourceSpans":1}',
    batch({ ...good, traceId: 'zz' }),
    batch({ ...good, spanId: undefined }),
    batch({ ...good, startTimeUnixNano: '-1' }),
    batch({ ...good, endTimeUnixNano: '99999999999999999999' }),
    batch({ ...good, name: 3 }),
  ])
    test(JSON.stringify(bad).slice(0, 60), () => assert.throws(() => parse(bad), PoisonError));
});
